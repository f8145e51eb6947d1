"""What happens to studies, told to whoever the operator names: events, and the webhook that they are sent to."""
