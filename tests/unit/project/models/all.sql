select * from {{ ref('one') }}
