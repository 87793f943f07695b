import { integer, text } from "@holdfast/common/config.ts";

/** Settings of the process `tds`, which the machine's agent starts beside the engine. */
export const tdsSettings = {
  socket: text("TDS_SOCKET", "Path of the Unix socket of the listener"),
  connectionsMax: integer("TDS_CONNECTIONS", "Max number of connections; further ones are closed", 10_000),
  usageSocket: text("TDS_USAGE_SOCKET", "Path of the Unix socket that reports the counts of the process"),
  socketDirectory: text("TDS_SOCKET_DIRECTORY", "Directory of PostgreSQL's Unix socket"),
  enginePort: integer("TDS_ENGINE_PORT", "Port in the name of PostgreSQL's Unix socket", 5432),
  database: text("TDS_DATABASE", "PostgreSQL's database, and the one of T-SQL clients that name no other", "defaultdb"),
  layoutMode: text("TDS_LAYOUT_MODE", "Layout of names: single-db or multi-db", "single-db"),
  serverCollation: text("TDS_SERVER_COLLATION", "Collation of the service", "SQL_Latin1_General_CP1_CI_AS"),
  certificateFile: text("TDS_CERTIFICATE_FILE", "PEM file of the service's certificate"),
  keyFile: text("TDS_KEY_FILE", "PEM file of the key of the certificate"),
};
