import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { conninfo, passLine } from "./postgresql.ts";
import { postgresqlSnippets } from "./postgresql-snippets.ts";

const connection: Connection = {
  host: "orders-abc.local.holdfast.test",
  port: 5432,
  user: "app_user",
  database: "defaultdb",
  uri: "",
  ca_certificate: "PEM",
  replica_uri: "postgres://app_user@replica-orders",
  all_nodes_uri: null,
  pooled_uri: null,
  jdbc_url: null,
  ado_connection_string: null,
  sqlserver_uri: null,
  postgresql_uri: null,
  bootstrap_servers: null,
  security_protocol: null,
  sasl_mechanisms: [],
  private_bootstrap_servers: null,
  private_security_protocol: null,
  private_sasl_mechanisms: [],
  listeners: [],
  nodes: [node("2", "replica", "127.77.0.2"), node("1", "primary", "127.77.0.1")],
  private_host: "",
  private_uri: "",
};

function node(id: string, role: "primary" | "replica", address: string): Connection["nodes"][number] {
  return { id, role, hostname: id, addresses: [address], private_hostname: "", private_addresses: [] };
}

test("a conninfo names the primary's address and verifies the name in full", () => {
  expect(conninfo(connection, { caFile: "/a b/ca.pem", passFile: "/p" })).toBe(
    "host=orders-abc.local.holdfast.test hostaddr=127.77.0.1 port=5432 dbname=defaultdb user=app_user sslmode=verify-full sslrootcert='/a b/ca.pem' passfile=/p",
  );
  expect(conninfo({ ...connection, nodes: [] }, { caFile: "/c" }, { user: "o'hara" })).toContain(
    "dbname=defaultdb user='o\\'hara'",
  );
});

test("a password line escapes what separates its fields", () => {
  expect(passLine(connection, "a:b", "p\\w:d")).toBe("orders-abc.local.holdfast.test:5432:*:a\\:b:p\\\\w\\:d\n");
});

const values = {
  host: "orders-abc.local.holdfast.test",
  address: "127.77.0.1",
  port: 5432,
  user: "app_user",
  database: `it's $x #{y} \\ "z"`,
  caFile: "/ca.pem",
  passwordFile: "/password",
  hostsFile: "/hosts",
  conninfo: `dbname='it\\'s $x #{y} \\\\ "z"'`,
};

test.each([
  ["psql", `psql 'dbname='\\''it\\'\\''s $x #{y} \\\\ "z"'\\''' -c`],
  ["python", `psycopg.connect("dbname='it\\\\'s $x #{y} \\\\\\\\ \\"z\\"'")`],
  ["ruby", `PG.connect('dbname=\\'it\\\\\\'s $x #{y} \\\\\\\\ "z"\\'')`],
  ["php", `pg_connect('dbname=\\'it\\\\\\'s $x #{y} \\\\\\\\ "z"\\'')`],
  ["node", `database: "it's $x #{y} \\\\ \\"z\\"",`],
  ["go", `config.Database = "it's $x #{y} \\\\ \\"z\\""`],
  ["java", `properties.setProperty("PGDBNAME", "it's $x #{y} \\\\ \\"z\\"");`],
] as const)("a program in %s quotes what its language interpolates", (language, literal) => {
  const program = postgresqlSnippets[language](values);
  expect(program).toContain(literal);
  expect(program).not.toContain("undefined");
});
