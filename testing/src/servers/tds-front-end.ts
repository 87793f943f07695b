import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import type { LayoutMode } from "@holdfast/tds/bind/databases.ts";
import { installation } from "@holdfast/tds/catalog/install.ts";
import { defaultCollation } from "@holdfast/tds/types/collation.ts";
import { startTdsServer, type TdsServer } from "@holdfast/tds/tds-server.ts";
import pg from "pg";
import { createTestCertificate } from "../controller/test-certificate.ts";

/** A front end of T-SQL on a real PostgreSQL, whose socket requires passwords by SCRAM. */
export interface TestTds {
  readonly server: TdsServer;
  readonly certificate: string;
  readonly user: string;
  readonly password: string;
  /** A superuser's session by PostgreSQL's protocol, in the same database. */
  readonly superuser: pg.Client;
  /** Directory of the socket that reports the counts. */
  readonly run: string;
  stop(): Promise<void>;
}

const database = "defaultdb";

/** `url` is the superuser's, such as that of `startTestPostgresql`; the server stays when this stops. */
export async function startTestTds(
  url: string,
  log = silentLog,
  layoutMode: LayoutMode = "single-db",
  collation = defaultCollation,
): Promise<TestTds> {
  const administrator = new pg.Client(url);
  await administrator.connect();
  const setting = async (name: string) => {
    const { rows } = await administrator.query<{ value: string }>(`SELECT current_setting('${name}') AS value`);
    return rows[0]?.value ?? "";
  };
  const dataDirectory = await setting("data_directory");
  const rules = "local all postgres trust\nlocal all all scram-sha-256\nhost all postgres all trust";
  const lines = rules.split("\n").map((line) => `('${line}')`);
  await administrator.query(`COPY (VALUES ${lines.join(", ")}) TO '${dataDirectory}/pg_hba.conf'`);
  await administrator.query("SELECT pg_reload_conf()");
  await administrator.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  await administrator.query(`CREATE DATABASE ${database}`);
  const [user, password] = ["erp_admin", "a long password, with ümlauts"];
  await administrator.query(`DROP ROLE IF EXISTS ${user}`);
  await administrator.query(`CREATE ROLE ${user} LOGIN PASSWORD '${password}'`);
  await administrator.query(`GRANT CREATE ON DATABASE ${database} TO ${user}`);
  const superuser = new pg.Client({ connectionString: url.replace(/\/postgres$/, `/${database}`) });
  await superuser.connect();
  await superuser.query(installation({ layoutMode, collation, defaultDatabase: database, administrators: user }));
  const { cert, key } = await createTestCertificate();
  const socketDirectory = await setting("unix_socket_directories");
  const port = Number(await setting("port"));
  const run = await mkdtemp(join(tmpdir(), "holdfast-tds-"));
  const server = await startTdsServer({
    usageAt: join(run, "tds-usage.sock"),
    at: { host: "127.0.0.1", port: 0 },
    backend: { socketDirectory, port, database, layoutMode, collation },
    certificate: cert,
    key,
    log,
  });
  return {
    server,
    certificate: cert,
    user,
    password,
    superuser,
    run,
    async stop() {
      await server.close();
      await rm(run, { recursive: true, force: true });
      await superuser.end();
      await administrator.end();
    },
  };
}
