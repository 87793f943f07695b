import type { PipelineDetail, PipelineStatus, PipelineTemplate } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { type Tone, toneOf } from "../tone.ts";

/** The tone of a pipeline; one that is "running" is complete, unlike an operation with this state. */
export function pipelineTone(status: PipelineStatus): Tone {
  return status === "running" ? "good" : toneOf(status);
}

/** The description of a template and its engines. */
export function templateDetail({ description, services }: PipelineTemplate): string {
  const engines = services.map(({ database_type: type, version }) => (version === null ? type : `${type} ${version}`));
  return `${description} With ${engines.join(", ")}.`;
}

type Connections = PipelineDetail["connections"][number]["connections"];

/** The parts of a connection that are set, except the password; a part with the password in it is secret. */
export function connectionParts(
  connections: Connections,
): readonly { readonly title: string; readonly text: string; readonly isSecret: boolean }[] {
  return Object.entries(connections).flatMap(([name, text]) =>
    text === null ? [] : [{ title: labelOf(name), text, isSecret: name === "password" || name === "connection_uri" }],
  );
}
