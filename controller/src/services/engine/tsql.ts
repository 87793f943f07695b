import { authorityOf, type EngineProfile } from "./engine-profile.ts";
import { postgresql } from "./postgresql.ts";

const { verifierOf, databases, connectionDatabase, replicas } = postgresql;

/** PostgreSQL behind the T-SQL front end. Its drivers of T-SQL take the authority of the certificate by file. */
export const tsql: EngineProfile = {
  verifierOf,
  databases,
  connectionDatabase,
  ...(replicas && { replicas }),
  uri: sqlserverUri,
  connectionForms: ({ service, enginePort }) => ({
    jdbcUrl: jdbcUrl(service),
    adoConnectionString: adoConnectionString(service),
    sqlserverUri: sqlserverUri(service),
    postgresqlUri: postgresql.uri({ ...service, port: enginePort }),
  }),
};

type Target = Parameters<EngineProfile["uri"]>[0];

/** URI of go-mssqldb and of the tools that share its format. */
function sqlserverUri(target: Target): string {
  const root = target.caFile === undefined ? "" : `&certificate=${target.caFile}`;
  return `sqlserver://${authorityOf(target)}?database=${target.database}&encrypt=true&TrustServerCertificate=false${root}`;
}

function jdbcUrl({ host, port, username, database }: Target): string {
  return `jdbc:sqlserver://${host}:${port};databaseName=${database};user=${username};encrypt=true;trustServerCertificate=false`;
}

function adoConnectionString({ host, port, username, database }: Target): string {
  return `Server=tcp:${host},${port};Database=${database};User ID=${username};Encrypt=True;TrustServerCertificate=False`;
}
