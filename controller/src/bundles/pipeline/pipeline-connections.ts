import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PipelineConnectionsSchema } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import type { DatabaseOutputs } from "#resource-kind/outputs.ts";
import { engineProfileOf } from "#services/engine/engine-profiles.ts";

type Connections = MessageInitShape<typeof PipelineConnectionsSchema>;
type ConnectionFormat = (outputs: DatabaseOutputs, showsSecrets: boolean) => Connections;

const uri: ConnectionFormat = (outputs, showsSecrets) =>
  showsSecrets ? { connectionUri: engineProfileOf(outputs.engine).uri(outputs) } : {};

/** Formats of connection details by role; for other roles they are a URI. */
// biome-ignore format: a table, aligned so that it reads as one
const formats: Readonly<Record<string, ConnectionFormat>> = {
  "kafka-ingestion": ({ host, port, username, password }, showsSecrets) => ({
    bootstrapServers: `${host}:${port}`, securityProtocol: "SASL_SSL", saslMechanism: "SCRAM-SHA-256", username,
    ...(showsSecrets && { password }),
  }),
  search: ({ host, port, username, password }, showsSecrets) => ({
    endpoint: `https://${host}:${port}`, username,
    ...(showsSecrets && { password }),
  }),
  "vector-store":  uri,
  cache:           uri,
  "feature-store": uri,
  "event-store":   uri,
};

/** The connection details of a service. Without `showsSecrets` they contain no password, and no URI with one. */
export function connectionsOf(role: string, outputs: DatabaseOutputs, showsSecrets: boolean): Connections {
  const format = Object.hasOwn(formats, role) ? formats[role] : undefined;
  return (format ?? uri)(outputs, showsSecrets);
}
