{# Warns of the rows with a value that its type cannot hold: of the column `untyped_columns` of a silver table. #}
{% test no_untyped_values(model, column_name) %}
{{ config(severity='warn') }}

select * from {{ model }}
where size({{ column_name }}) > 0
{% endtest %}
