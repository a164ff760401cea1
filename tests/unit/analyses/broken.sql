select nothing from {{ ref('order_items') }}
