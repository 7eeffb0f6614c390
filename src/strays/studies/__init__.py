"""The studies of the paper: corpora, protocol, tables and figures. Nothing else imports this package."""
