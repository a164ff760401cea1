"""Random transactions on Northwind, from several connections at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg2

HIGHEST_ORDER = 32_000
LONG_SECONDS = 2.0
SECONDS_TO_RETRY = 90


@dataclass
class Storm:
    """Transactions that run in threads of their own, each from its own connection.

    Args:
        connect: makes a connection to the source database.
        seed: of the choices; the interleaving is the machine's.
        transactions: how many in all.
        connections: how many write at the same time.
        transact: makes the changes of one transaction; Northwind's where none is given.
        driver_error: what the database's driver raises.
    """

    connect: Callable[[], Any]
    seed: int
    transactions: int
    connections: int = 4
    transact: Callable[[Any, random.Random], None] | None = None
    driver_error: type[Exception] = psycopg2.Error
    committed: int = 0
    errors: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Begin."""
        for number in range(self.connections):
            thread = threading.Thread(target=self._run, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)

    @property
    def is_over(self) -> bool:
        """Whether every transaction is committed, or one could not be."""
        return not any(thread.is_alive() for thread in self._threads)

    def wait(self) -> None:
        """Wait for the end; raise what went wrong."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _run(self, number: int) -> None:
        draw = random.Random(self.seed * 1_000 + number)
        connection = None
        transact = self.transact or _transaction
        try:
            for _ in range(self.transactions // self.connections):
                end = time.monotonic() + SECONDS_TO_RETRY
                plan = draw.getrandbits(32)
                while True:
                    try:
                        connection = connection or self.connect()
                        transact(connection, random.Random(plan))
                        connection.commit()
                        break
                    except self.driver_error as error:
                        connection = self._recovered(connection)
                        # Deadlocks, a key that another took first, a server that restarts.
                        if time.monotonic() > end:
                            raise error
                        plan = draw.getrandbits(32)
                        time.sleep(0.05)
                with self._lock:
                    self.committed += 1
        except BaseException as error:
            self.errors.append(error)
        finally:
            if connection is not None:
                connection.close()

    def _recovered(self, connection: Any) -> Any:
        """The connection, rolled back, or None where it is lost."""
        try:
            connection.rollback()
            return connection
        except (self.driver_error, AttributeError):
            return None


def _transaction(connection: Any, draw: random.Random) -> None:
    with connection.cursor() as cursor:
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            draw.choices(CHANGES, WEIGHTS)[0](cursor, draw)
        if draw.random() < 0.01:
            # It commits late, behind transactions with higher LSNs.
            time.sleep(LONG_SECONDS)


def _pick(cursor: Any, draw: random.Random, table: str, key: str) -> Any:
    cursor.execute(
        f"select {key} from datalake.{table} order by {key} offset floor("
        f"%s * (select count(*) from datalake.{table})) limit 1",
        (draw.random(),),
    )
    row = cursor.fetchone()
    return row[0] if row else None


def _add_lines(cursor: Any, draw: random.Random, order_id: int) -> None:
    for product_id in draw.sample(range(1, 78), draw.choice((0, 1, 2, 3))):
        cursor.execute(
            "insert into datalake.order_details values (%s, %s, %s, %s, %s)"
            " on conflict (order_id, product_id)"
            " do update set quantity = excluded.quantity",
            (
                order_id,
                product_id,
                draw.randint(100, 9_999) / 100,
                draw.randint(1, 120),
                draw.choice((0, 0, 0.05, 0.15, 0.25)),
            ),
        )


def insert_order(cursor: Any, draw: random.Random) -> None:
    order_id = draw.randint(12_000, HIGHEST_ORDER)
    cursor.execute(
        "insert into datalake.orders (order_id, customer_id, employee_id, order_date,"
        " required_date, ship_via, freight, ship_name, ship_country)"
        " values (%s, %s, %s, date '1998-01-01' + %s, date '1998-02-01' + %s,"
        " %s, %s, %s, %s)"
        " on conflict do nothing",
        (
            order_id,
            draw.choice((None, "ALFKI", "BONAP", "ERNSH", "QUICK", "SAVEA")),
            draw.choice((None, 1, 2, 3, 4, 5)),
            draw.randint(0, 120),
            draw.randint(0, 120),
            draw.choice((None, 1, 2, 3)),
            draw.randint(0, 9_999) / 100,
            draw.choice(("Käse & Söhne", "Folk och fä HB", 'The "Cracker" Box \\ \n')),
            draw.choice((None, "Germany", "Brazil", "USA")),
        ),
    )
    _add_lines(cursor, draw, order_id)


def update_order(cursor: Any, draw: random.Random) -> None:
    order_id = _pick(cursor, draw, "orders", "order_id")
    column, value = draw.choice(
        (
            ("shipped_date", draw.choice((None, "1998-05-20", "1998-06-30"))),
            ("customer_id", draw.choice((None, "ALFKI", "ANATR", "WOLZA"))),
            ("employee_id", draw.choice((None, 6, 7, 8, 9))),
            ("ship_via", draw.choice((None, 1, 2, 3))),
            ("freight", draw.randint(0, 99_999) / 100),
        )
    )
    cursor.execute(
        f"update datalake.orders set {column} = %s where order_id = %s", (value, order_id)
    )


def delete_order(cursor: Any, draw: random.Random) -> None:
    order_id = _pick(cursor, draw, "orders", "order_id")
    cursor.execute("delete from datalake.orders where order_id = %s", (order_id,))


def replace_order(cursor: Any, draw: random.Random) -> None:
    """Delete an order and insert it again, with other lines."""
    order_id = _pick(cursor, draw, "orders", "order_id")
    cursor.execute("delete from datalake.orders where order_id = %s", (order_id,))
    cursor.execute(
        "insert into datalake.orders (order_id, customer_id) values (%s, 'FRANK')",
        (order_id,),
    )
    _add_lines(cursor, draw, order_id)


def change_order_key(cursor: Any, draw: random.Random) -> None:
    order_id = _pick(cursor, draw, "orders", "order_id")
    cursor.execute(
        "update datalake.orders set order_id = %s where order_id = %s",
        (draw.randint(12_000, HIGHEST_ORDER), order_id),
    )


def change_lines(cursor: Any, draw: random.Random) -> None:
    order_id = _pick(cursor, draw, "orders", "order_id")
    if draw.random() < 0.4:
        cursor.execute(
            "delete from datalake.order_details"
            " where order_id = %s and product_id %% 2 = %s",
            (order_id, draw.choice((0, 1))),
        )
    _add_lines(cursor, draw, order_id)


def update_customer(cursor: Any, draw: random.Random) -> None:
    customer_id = _pick(cursor, draw, "customers", "customer_id")
    column = draw.choice(("contact_name", "city", "company_name"))
    cursor.execute(
        f"update datalake.customers set {column} = %s where customer_id = %s",
        (f"{column} {draw.randint(1, 99)}", customer_id),
    )


def insert_customer(cursor: Any, draw: random.Random) -> None:
    cursor.execute(
        "insert into datalake.customers (customer_id, company_name) values (%s, %s)"
        " on conflict (customer_id) do update set company_name = excluded.company_name",
        (f"N{draw.randint(0, 99):03d}", f"New {draw.randint(0, 9)}"),
    )


def delete_customer(cursor: Any, draw: random.Random) -> None:
    cursor.execute(
        "delete from datalake.customers where customer_id = %s",
        (f"N{draw.randint(0, 99):03d}",),
    )


def update_shown(cursor: Any, draw: random.Random) -> None:
    """Change what many orders show: an employee, a shipper, a product."""
    table, key, column = draw.choice(
        (
            ("employees", "employee_id", "title"),
            ("shippers", "shipper_id", "phone"),
            ("products", "product_id", "product_name"),
            ("suppliers", "supplier_id", "city"),
        )
    )
    picked = _pick(cursor, draw, table, key)
    cursor.execute(
        f"update datalake.{table} set {column} = %s where {key} = %s",
        (f"{column} {draw.randint(1, 99)}", picked),
    )


def move_territory(cursor: Any, draw: random.Random) -> None:
    employee_id = draw.randint(1, 9)
    territory_id = _pick(cursor, draw, "territories", "territory_id")
    if draw.random() < 0.5:
        cursor.execute(
            "delete from datalake.employee_territories where territory_id = %s",
            (territory_id,),
        )
    else:
        cursor.execute(
            "insert into datalake.employee_territories values (%s, %s)"
            " on conflict do nothing",
            (employee_id, territory_id),
        )


CHANGES = (
    insert_order,
    update_order,
    delete_order,
    replace_order,
    change_order_key,
    change_lines,
    update_customer,
    insert_customer,
    delete_customer,
    update_shown,
    move_territory,
)
WEIGHTS = (25, 25, 10, 8, 6, 20, 3, 4, 3, 1, 1)
