"""What the server and the review desk share: middleware (one file each), error answers, connections and sockets."""
