import type { Pipeline } from "../../answers.ts";
import type { CliCommand } from "../command.ts";
import { type Context, noneNamed } from "../context.ts";
import { given, take } from "../flag-values.ts";

const templateColumns = ["id", "version", "name", "available", "unavailable_reason", "estimated_monthly_cost"];
const pipelineFields = ["id", "name", "template_id", "zone", "status", "status_detail"];
const memberColumns = ["role", "database_type", "status", "healthy", "status_detail", "service_id"];

interface CreateFlags {
  readonly template: string;
  readonly zone: string;
  readonly plan?: string;
  readonly wait?: boolean;
}

export function addPipelines(pipelines: CliCommand): void {
  pipelines
    .command("templates")
    .description("what pipelines can be made of")
    .example("pipelines templates")
    .does(async ({ client, output }) => output.list(await take(client.pipelines.templates()), templateColumns));

  pipelines
    .command("create <name>")
    .description("make all services of a template")
    .requiredOption("--template <template>", "template, such as rag-pipeline")
    .option("--zone <zone>", "where its services run", "local")
    .option("--plan <plan>", "plan of all its services, in place of the template's")
    .option("--wait", "wait until all of it is healthy")
    .example("pipelines create answers --template rag-pipeline --wait")
    .does(async (context, name: string, flags: CreateFlags) => {
      const { client, output, signal } = context;
      const { template, zone, plan, wait } = flags;
      const made = await client.pipelines.create({ name, template_id: template, zone, ...given({ plan_name: plan }) });
      const shown = wait === true ? await client.pipelines.waitUntilRunning(made.id, { signal }) : made;
      output.show(shown, pipelineFields);
    });

  pipelines
    .command("list")
    .description("the pipelines of the organization")
    .example("pipelines list")
    .does(async ({ client, output }) => output.list(await take(client.pipelines.list()), pipelineFields));

  pipelines
    .command("get <pipeline>")
    .description("a pipeline with its services; in JSON also how to reach them")
    .example("pipelines get answers --output json")
    .does(async (context, name: string) => {
      const { client, output } = context;
      const pipeline = await client.pipelines.get((await pipelineOf(context, name)).id);
      output.show(pipeline, pipelineFields);
      if (output.format === "table") output.list(pipeline.members, memberColumns);
    });

  pipelines
    .command("delete <pipeline>")
    .description("delete a pipeline with all its services")
    .option("--yes", "do not ask")
    .option("--wait", "wait until it is gone")
    .example("pipelines delete answers --wait")
    .does(async (context, name: string, { yes, wait }: { yes?: boolean; wait?: boolean }) => {
      const pipeline = await pipelineOf(context, name);
      await context.confirm(`Delete ${pipeline.name} and all its services with their data?`, yes);
      const deleted = await context.client.pipelines.delete(pipeline.id);
      if (wait === true) await context.client.pipelines.waitUntilGone(pipeline.id, { signal: context.signal });
      else context.output.show(deleted, pipelineFields);
    });
}

/** By name, or by id. */
async function pipelineOf({ client }: Context, nameOrId: string): Promise<Pipeline> {
  if (/^\d/.test(nameOrId)) return client.pipelines.get(nameOrId);
  for await (const pipeline of client.pipelines.list()) if (pipeline.name === nameOrId) return pipeline;
  throw noneNamed("pipeline", nameOrId);
}
