"""What the desk and the server have in common: sockets, refusals and answers. No scores, no texts."""
