"""The rules of subscriptions: SQL filters and actions, and correlation filters, compiled to closures."""
