{# A view that is left alone where it has this text already. #}
{% materialization staging_view, adapter='spark' %}
    {%- set target_relation, text = this.incorporate(type='view'), local_md5(compiled_code) -%}
    {{ run_hooks(pre_hooks) }}
    {%- if load_relation(this) and cdc_lakehouse.stored_table(this)['recorded'].get('text') == text -%}
        {%- do store_raw_result('main', message='unchanged', code='', rows_affected=0) -%}
    {%- else -%}
        {%- call statement('main') -%}
            create or replace view {{ target_relation }}
            tblproperties ('lakehouse.text' = '{{ text }}')
            as {{ modules.re.sub('\n *', '\n', compiled_code) }}
        {%- endcall -%}
    {%- endif -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
