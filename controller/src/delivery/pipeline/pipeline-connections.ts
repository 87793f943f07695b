import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PipelineConnectionsSchema } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { connectionUri, type DatabaseOutputs } from "#resource-kind/outputs.ts";

type Connections = MessageInitShape<typeof PipelineConnectionsSchema>;
type Form = (outputs: DatabaseOutputs, showsSecrets: boolean) => Connections;

const uri: Form = (outputs, showsSecrets) => (showsSecrets ? { connectionUri: connectionUri(outputs, null) } : {});

/** How services of each role are told of; a role that is none of these is told of as a URI. */
// biome-ignore format: a table, aligned so that it reads as one
const forms: Readonly<Record<string, Form>> = {
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

/** Pure: how a service of a role is reached; what has its password is left out unless secrets are shown. */
export function connectionsOf(role: string, outputs: DatabaseOutputs, showsSecrets: boolean): Connections {
  const form = Object.hasOwn(forms, role) ? forms[role] : undefined;
  return (form ?? uri)(outputs, showsSecrets);
}
