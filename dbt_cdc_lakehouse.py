"""The dbt plugin by the name that dbt finds plugins by (``cdc_lakehouse.dbt.plugin``)."""

from cdc_lakehouse.dbt.plugin import plugins as plugins
