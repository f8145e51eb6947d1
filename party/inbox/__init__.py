"""What waits for the party's operator: studies that the curator has announced, and what people are shown of them."""
