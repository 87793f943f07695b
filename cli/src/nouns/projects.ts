import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import type { ProjectDescriptor } from "@holdfast/sdk/projects.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { take, seconds } from "../flag-values.ts";
import { driftRow, hasChanges, planText } from "./project-plan.ts";

const projectFields = ["id", "name", "status", "status_detail", "health", "last_deployment_id", "monthly_cost"];
const listColumns = ["name", "status", "health", "monthly_cost", "updated_at"];
const resourceColumns = ["logical_name", "kind", "status", "status_detail", "resource_id", "managed"];
const deploymentColumns = ["id", "status", "error", "project_status", "actor", "created_at"];

interface FileFlag {
  readonly file: string;
}

interface ApplyFlags extends FileFlag {
  readonly yes?: boolean;
  readonly wait: boolean;
  readonly timeout: number;
}

export function addProjects(projects: CliCommand): void {
  projects
    .command("init [name]")
    .description("write a first descriptor")
    .option("-f, --file <path>", "path of the new file", "holdfast.yaml")
    .example("projects init shop")
    .does(async ({ output }, name: string | undefined, { file }: FileFlag) => {
      if (existsSync(file)) throw new UsageError(`${file} already exists`);
      await writeFile(file, firstDescriptor(name ?? "shop"));
      output.info(`${file} is written: change it, then run holdfast projects plan`);
    });

  withFile(projects.command("validate").description("check a descriptor for errors; changes nothing"))
    .example("projects validate -f holdfast.yaml")
    .does(async ({ client, output }, { file }: FileFlag) => {
      await client.projects.plan(await descriptorIn(file));
      output.info(`${file} is valid`);
    });

  withFile(projects.command("plan").description("show the changes and the cost of a deployment; changes nothing"))
    .option("--check", "exit with 1 when there are changes")
    .example("projects plan -f holdfast.yaml")
    .does(async ({ client, output }, { file, check }: FileFlag & { check?: boolean }) => {
      const plan = await client.projects.plan(await descriptorIn(file));
      if (output.format === "table") output.print(planText(plan));
      else output.show(plan);
      if (check === true && hasChanges(plan)) throw new PlanHasChanges();
    });

  withFile(projects.command("apply").description("deploy a descriptor, completely or not at all"))
    .option("--yes", "do not ask for confirmation")
    .option("--no-wait", "return as soon as the request is accepted")
    .option("--timeout <duration>", "give up waiting after this time, such as 90s or 30m", seconds, 1_800)
    .excludes("--timeout", "--no-wait")
    .example("projects apply -f holdfast.yaml")
    .does(async (context, flags: ApplyFlags) => apply(context, flags));

  projects
    .command("list")
    .description("list the projects of the organization")
    .example("projects list")
    .does(async ({ client, output }) => output.list(await take(client.projects.list()), listColumns));

  projects
    .command("status <project>")
    .description("show a project with its resources")
    .example("projects status shop")
    .does(async ({ client, output }, name: string) => {
      const project = await client.projects.get(name);
      output.show(project, projectFields);
      if (output.format === "table") output.list(project.resources, resourceColumns);
    });

  projects
    .command("deployments <project>")
    .description("list deployments of a project with their outcomes")
    .example("projects deployments shop")
    .does(async ({ client, output }, name: string) =>
      output.list(await take(client.projects.deployments(name)), deploymentColumns),
    );

  projects
    .command("drift <project>")
    .description("show differences between resources and their descriptor")
    .example("projects drift shop")
    .does(async ({ client, output }, name: string) => {
      const { resources } = await client.projects.drift(name);
      const rows = resources.flatMap(({ logical_name, changes }) =>
        changes.map((change) => ({ logical_name, ...(output.format === "table" ? driftRow(change) : change) })),
      );
      output.list(rows, ["logical_name", "path", "before", "after"]);
    });

  projects
    .command("abort <project> [deployment]")
    .description("abort a deployment in progress, the newest by default")
    .example("projects abort shop")
    .does(async ({ client, output }, name: string, deployment: string | undefined) => {
      const id = deployment ?? (await client.projects.get(name)).last_deployment_id;
      output.show(await client.projects.abort(name, id), deploymentColumns);
    });

  projects
    .command("remove-resource <project> <resource>")
    .alias("release")
    .description("remove an unmanaged resource from the project; it remains in the organization")
    .example("projects remove-resource shop old-db")
    .does(async ({ client, output }, name: string, resource: string) =>
      output.show(await client.projects.release(name, resource), projectFields),
    );

  projects
    .command("delete <project>")
    .description("delete a project with all its resources")
    .option("--yes", "do not ask for confirmation")
    .option("--wait", "wait until it is deleted")
    .example("projects delete shop --wait")
    .does(async (context, name: string, { yes, wait }: { yes?: boolean; wait?: boolean }) => {
      const { client, output } = context;
      const { resources } = await client.projects.get(name);
      const names = resources.map(({ logical_name, managed }) =>
        managed ? logical_name : `${logical_name} (unmanaged)`,
      );
      await context.confirm(`Delete ${name} and all its data: ${names.join(", ") || "nothing"}?`, yes);
      const deleted = await client.projects.delete(name);
      if (wait === true) await client.projects.waitUntilDeleted(name, { signal: context.signal });
      output.show(wait === true ? await client.projects.get(name) : deleted, projectFields);
    });
}

/** Sets the exit code of --check. */
class PlanHasChanges extends Error {
  override readonly name = "PlanHasChanges";

  constructor() {
    super("the plan has changes");
  }
}

async function apply(context: Context, { file, yes, wait, timeout }: ApplyFlags): Promise<void> {
  const { client, output, signal } = context;
  const descriptor = await descriptorIn(file);
  const plan = await client.projects.plan(descriptor);
  if (output.format === "table") output.print(planText(plan));
  if (hasChanges(plan)) await context.confirm("Apply this plan?", yes);
  const { name, deployment_id: id } = await client.projects.deploy(descriptor, { planDigest: plan.plan_digest });
  if (!wait) return output.show(await client.projects.get(name), projectFields);
  const progress = context.progress(name);
  try {
    await client.projects.waitForDeployment(name, id, {
      timeoutMs: timeout * 1_000,
      signal,
      onProgress: ({ resources, project_status: status, progress_pct }) => {
        const open = resources.filter((resource) => resource.status !== "Running");
        const current_task = open.map((resource) => `${resource.logical_name} ${resource.status}`).join(", ");
        progress.update({ status, current_task: current_task === "" ? null : current_task, progress_pct });
      },
    });
  } finally {
    progress.end();
  }
  const project = await client.projects.get(name);
  output.show(project, projectFields);
  if (output.format === "table") output.list(project.resources, resourceColumns);
}

function withFile(command: CliCommand): CliCommand {
  return command.option("-f, --file <path>", "the descriptor, YAML or JSON", "holdfast.yaml");
}

async function descriptorIn(file: string): Promise<ProjectDescriptor> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file}: ${error.code === "ENOENT" ? "the file does not exist" : error.message}`);
  });
  const { parse, YAMLParseError } = await import("yaml");
  try {
    // Merge keys (`<<: *base`) are of YAML 1.1, and common in descriptors.
    const read: unknown = parse(text, { merge: true });
    if (typeof read === "object" && read !== null && !Array.isArray(read)) return read as ProjectDescriptor;
  } catch (error) {
    if (error instanceof YAMLParseError && error.code === "MULTIPLE_DOCS")
      throw new UsageError(`${file} has several YAML documents; a descriptor is one, without a line of --- after it`);
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new UsageError(`${file} is not a descriptor: it must be an object with name and resources`);
}

function firstDescriptor(name: string): string {
  return `name: ${name}
resources:
  - logical_name: db
    kind: postgres
    spec:
      plan: tier-1
      storage_gb: 1
  - logical_name: cache
    kind: valkey
    spec:
      plan: tier-1
      storage_gb: 1
dependencies:
  cache: [db]
`;
}
