"""TICKIT's answers, as readers of the lake need to know them."""

# Gold's tables, and the key of each.
KEYS = {
    "sales_by_event": "event_id",
    "sales_by_category": "category_id",
    "sales_by_venue": "venue_id",
    "sales_by_city": "city",
    "sales_by_month": "sale_month",
    "best_buyers": "buyer_id",
    "best_sellers": "seller_id",
    "listing_sell_through": "event_id",
}
