"""How frames become a picture, live or replayed: door, rules and taking."""
