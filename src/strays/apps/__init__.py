"""How people and programs reach strays: the command line, the server, the review desk."""
