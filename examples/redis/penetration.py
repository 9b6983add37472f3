#!/usr/bin/env python3
"""A filter in front of a cache and a database: requests for what does not exist stop here.

    examples/redis/penetration.py [redis://127.0.0.1:6379]

Asks with BF.TEST: nil says that the filter is not there (evicted, or not built yet). Then
requests pass, instead of all being turned away.
"""

import sys

import redis

FILTER = "products:exist"
DATABASE = {f"product:{number}": f"name of {number}" for number in range(2000)}


class Shop:
    def __init__(self, client):
        self.client = client
        self.turned_away = self.cached = self.queried = 0

    def get(self, product):
        if self.client.execute_command("BF.TEST", FILTER, product) == 0:
            self.turned_away += 1
            return None
        cached = self.client.get(f"cache:{product}")
        if cached is not None:
            self.cached += 1
            return cached.decode()
        self.queried += 1
        found = DATABASE.get(product)
        if found is not None:
            self.client.set(f"cache:{product}", found, ex=300)
        return found

    def report(self, what):
        print(f"{what}: {self.turned_away} turned away, {self.cached} from the cache, "
              f"{self.queried} from the database")
        self.turned_away = self.cached = self.queried = 0


def main(url="redis://127.0.0.1:6379"):
    client = redis.from_url(url)
    client.delete(FILTER, *(f"cache:{product}" for product in DATABASE))
    shop = Shop(client)

    attack = [f"product:{number}" for number in range(10_000, 13_000)]
    for product in attack[:300]:
        shop.get(product)
    shop.report("without a filter, 300 requests for nothing")

    # All that exists goes in, so that nobody outside decides what the filter holds.
    client.execute_command("BF.INSERT", FILTER, "CAPACITY", 10_000, "ERROR", 0.001,
                           "ITEMS", *DATABASE)
    for product in attack:
        shop.get(product)
    shop.report("with it, 3000 requests for nothing")

    for product in list(DATABASE)[:500] * 2:
        assert shop.get(product) == DATABASE[product]
    shop.report("1000 requests for 500 products")


if __name__ == "__main__":
    main(*sys.argv[1:])
