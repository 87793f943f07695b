"""Connects with a verified certificate: python3 connect.py <connection string of `services connect --conninfo`>"""
import sys

import psycopg2

connection = psycopg2.connect(sys.argv[1])
cursor = connection.cursor()
cursor.execute("SELECT current_user, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
user, version = cursor.fetchone()
print(f"verified as {user} by {version}")
connection.close()
