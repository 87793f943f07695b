// Connects with a verified certificate: node connect.mjs <connection string of `services connect --conninfo`>,
// with the password in PGPASSWORD.
import { readFileSync } from "node:fs";
import pg from "pg";

const parameters = Object.fromEntries(
  [...process.argv[2].matchAll(/(\w+)=(?:'((?:\\.|[^'])*)'|(\S+))/g)].map(([, name, quoted, plain]) => [
    name,
    plain ?? quoted.replaceAll(/\\(.)/g, "$1"),
  ]),
);
const client = new pg.Client({
  host: parameters.hostaddr,
  port: Number(parameters.port),
  user: parameters.user,
  database: parameters.dbname,
  ssl: { ca: readFileSync(parameters.sslrootcert), servername: parameters.host },
});
await client.connect();
const { rows } = await client.query(
  "SELECT current_user, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
);
console.log(`verified as ${rows[0].current_user} by ${rows[0].version}`);
await client.end();
