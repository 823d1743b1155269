"""Every night: what is kept of it, what it is judged by, who is told, and when it runs."""
