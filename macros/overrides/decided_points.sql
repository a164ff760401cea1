{# The points (see _points) by which this model's rows are decided, by the property of its table that records them. #}
{% macro decided_points() -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'] -%}
    {%- set before = dict.fromkeys(cdc_lakehouse._points(recorded.get('ignored_truncates', '').split()), 'ignore') -%}
    {%- do before.update(dict.fromkeys(cdc_lakehouse._points(recorded.get('truncates', '').split()), 'apply')) -%}
    {%- set known, decided = before.keys() | list, {'truncates': [], 'ignored_truncates': []} -%}
    {%- for bronze_table in cdc_lakehouse.reads_of(model)['bronze'] -%}
        {%- do known.extend(cdc_lakehouse.run_bounds().get(bronze_table, {}).get('truncates', [])) -%}
        {%- set name = 'complete_snapshots.' ~ bronze_table -%}
        {%- set named = cdc_lakehouse.overrides('complete_snapshots').get(bronze_table, []) -%}
        {%- set points = named | rejectattr(0, 'none') | list + cdc_lakehouse._points(recorded.get(name, '').split()) -%}
        {%- do decided.update({name: points | unique | sort}) -%}
    {%- endfor -%}
    {%- set named = cdc_lakehouse.overrides('truncates') -%}
    {%- for point in known | unique | sort -%}
        {%- set plain = (none, point[1]) -%}
        {%- set same = known | unique | selectattr(1, 'equalto', point[1]) | reject('in', named) | list -%}
        {%- set said = named.get(point, named.get(plain, before.get(point))) -%}
        {%- if plain in named and same | length > 1 -%}
            {%- do exceptions.raise_compiler_error(
                "variable 'cdc_lakehouse_truncates' names position " ~ point[1] ~ ', and there are '
                ~ same | map('join', '@') | join(' and ') ~ ': name each with its epoch') -%}
        {%- elif before.get(point, said) != said and not should_full_refresh() -%}
            {%- do exceptions.raise_compiler_error(
                this ~ ' was built with the TRUNCATE at ' ~ point | join('@') ~ ': ' ~ before[point]
                ~ "; variable 'cdc_lakehouse_truncates' says " ~ said
                ~ ': dbt build --full-refresh -s ' ~ model.name ~ '+') -%}
        {%- elif said -%}
            {%- do decided['truncates' if said == 'apply' else 'ignored_truncates'].append(point) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(decided) }}
{%- endmacro %}
