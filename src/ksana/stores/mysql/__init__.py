"""MySQL and MariaDB through asyncmy: InnoDB, READ COMMITTED, row locks that skip each other."""

from ksana.stores.mysql.database import MysqlDatabase

__all__ = ["MysqlDatabase"]
