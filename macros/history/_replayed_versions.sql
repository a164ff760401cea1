{#
    The versions that the whole history of some keys gives, in the columns that history_rows
    yields; scratch rows. `keys` is a relation with the key's column. Versions whose events bronze
    no longer has stay, but in a full refresh. Runs statements.
#}
{% macro _replayed_versions(name, table, keys, is_increment, inherited=none) -%}
    {{ return(cdc_lakehouse.scratch_rows(name, cdc_lakehouse.history_rows(
        cdc_lakehouse.change_history(name ~ '_events', table, keys), table,
        stored=cdc_lakehouse._dropped_versions(table) if is_increment, inherited=inherited
    ))) }}
{%- endmacro %}
