import type { DatabaseOutputs } from "@holdfast/controller/resource-kind/outputs.ts";
import type { RunningService } from "../platform/services.ts";

/** Outputs of a service for its consumers, from responses of the public API. */
export function outputsOf({ service, connection, password }: RunningService): DatabaseOutputs {
  return {
    type: "database",
    engine: service.database_type,
    host: connection.private_host,
    port: connection.port,
    username: connection.user,
    password,
    database: connection.database,
  };
}
