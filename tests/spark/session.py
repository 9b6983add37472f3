"""Sessions of Spark whose settings work on two cores."""

import os
import sys

# Before the JVM starts: workers are of this environment, which has the package.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession  # noqa: E402

CLUSTER = "local-cluster[2,1,1024]"


def session(master, folder, **settings):
    """A session; its files go to a folder. Settings are named with _ for each dot."""
    java = "-XX:+UseSerialGC"
    builder = (
        SparkSession.builder.master(master)
        .appName("petal")
        .config("spark.ui.enabled", "false")
        .config("spark.network.timeout", "600s")
        .config("spark.executor.heartbeatInterval", "60s")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.executor.extraJavaOptions", java)
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executorEnv.PYSPARK_PYTHON", sys.executable)
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()
