"""The SQL family: one schema and one set of statements for SQLite, PostgreSQL and MySQL/MariaDB."""
