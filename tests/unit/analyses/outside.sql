select * from read_text('/etc/passwd'), {{ ref('order_items') }}
