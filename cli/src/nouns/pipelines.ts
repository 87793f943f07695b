import type { CliCommand } from "../command.ts";
import { omitUndefined, take } from "../flag-values.ts";
import { pipelineOf } from "../lookup.ts";

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
    .description("list the templates of pipelines")
    .example("pipelines templates")
    .does(async ({ client, output }) => output.list(await take(client.pipelines.templates()), templateColumns));

  pipelines
    .command("create <name>")
    .description("create all services of a template")
    .requiredOption("--template <template>", "name of the template, such as rag-pipeline")
    .option("--zone <zone>", "zone of the services", "local")
    .option("--plan <plan>", "plan of all services, instead of the template's")
    .option("--wait", "wait until all services are healthy")
    .example("pipelines create answers --template rag-pipeline --wait")
    .does(async (context, name: string, flags: CreateFlags) => {
      const { client, output, signal } = context;
      const { template, zone, plan, wait } = flags;
      const created = await client.pipelines.create({
        name,
        template_id: template,
        zone,
        ...omitUndefined({ plan_name: plan }),
      });
      const pipeline = wait === true ? await client.pipelines.waitUntilRunning(created.id, { signal }) : created;
      output.show(pipeline, pipelineFields);
    });

  pipelines
    .command("list")
    .description("list the pipelines of the organization")
    .example("pipelines list")
    .does(async ({ client, output }) => output.list(await take(client.pipelines.list()), pipelineFields));

  pipelines
    .command("get <pipeline>")
    .description("show a pipeline with its services; in JSON also their connections")
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
    .option("--yes", "do not ask for confirmation")
    .option("--wait", "wait until it is deleted")
    .example("pipelines delete answers --wait")
    .does(async (context, name: string, { yes, wait }: { yes?: boolean; wait?: boolean }) => {
      const pipeline = await pipelineOf(context, name);
      await context.confirm(`Delete ${pipeline.name} and all its services with their data?`, yes);
      const deleted = await context.client.pipelines.delete(pipeline.id);
      if (wait === true) await context.client.pipelines.waitUntilDeleted(pipeline.id, { signal: context.signal });
      else context.output.show(deleted, pipelineFields);
    });
}
