import type { Stack } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { take } from "../flag-values.ts";
import { stackOf } from "../lookup.ts";

const templateColumns = ["name", "version", "title", "available", "unavailable_reason"];
const stackFields = [
  "id",
  "name",
  "status",
  "status_detail",
  "template_name",
  "template_version",
  "monthly_cost",
  "endpoint_url",
];
const resourceColumns = ["symbolic_name", "kind", "status", "status_detail", "service_id"];
const lineColumns = ["symbolic_name", "kind", "description", "monthly_cost", "is_ceiling"];
const migrationFields = ["id", "from_version", "to_version", "status", "status_detail"];
const stepColumns = ["symbolic_name", "action", "status", "error"];

interface LaunchFlags {
  readonly template: string;
  readonly acceptCost?: number;
  readonly zone?: string;
  readonly wait?: boolean;
}

export function addStacks(stacks: CliCommand): void {
  stacks
    .command("templates")
    .description("list the templates of stacks")
    .example("stacks templates")
    .does(async ({ client, output }) => output.list(await take(client.stacks.templates()), templateColumns));

  stacks
    .command("preview <template>")
    .description("show the monthly cost of a stack of a template")
    .example("stacks preview web-database")
    .does(async ({ client, output }, template: string) => {
      const preview = await client.stacks.preview(template);
      if (output.format !== "table") return output.show(preview);
      output.list(preview.line_items, lineColumns);
      output.info(`\n${preview.monthly_total.toFixed(2)} ${preview.currency} a month`);
      for (const warning of preview.warnings) output.info(warning);
    });

  stacks
    .command("launch <name>")
    .description("launch a stack at a cost that you accept")
    .requiredOption("--template <template>", "template to launch")
    .option("--accept-cost <amount>", "accepted monthly cost", amount)
    .option("--zone <zone>", "zone of the resources")
    .option("--wait", "wait until it is Running")
    .example("stacks launch shop --template web-database --accept-cost 32.2 --wait")
    .does(async (context, name: string, flags: LaunchFlags) => {
      const { client, output, signal } = context;
      const accepted = flags.acceptCost ?? (await acceptedCost(context, flags.template));
      const created = await client.stacks.create({
        name,
        template_name: flags.template,
        accepted_monthly_cost: accepted,
        ...(flags.zone !== undefined && { zone: flags.zone }),
      });
      showStack(context, flags.wait === true ? await client.stacks.waitUntilRunning(created.id, { signal }) : created);
      if (flags.wait !== true) output.info(`\nIt is being created: ${context.program} stacks get ${name}`);
    });

  stacks
    .command("list")
    .description("list the stacks of the organization")
    .example("stacks list")
    .does(async ({ client, output }) => output.list(await take(client.stacks.list()), stackFields.slice(0, 7)));

  stacks
    .command("get <stack>")
    .description("show a stack with its resources")
    .example("stacks get shop")
    .does(async (context, name: string) => showStack(context, await stackOf(context, name)));

  addUpgrade(stacks);

  stacks
    .command("delete <stack>")
    .description("delete a stack with all its resources")
    .option("--yes", "do not ask for confirmation")
    .option("--wait", "wait until it is deleted")
    .example("stacks delete shop --wait")
    .does(async (context, name: string, { yes, wait }: { yes?: boolean; wait?: boolean }) => {
      const stack = await stackOf(context, name);
      const names = stack.resources.map(({ symbolic_name }) => symbolic_name).join(", ");
      await context.confirm(`Delete ${stack.name} and all its data: ${names || "nothing"}?`, yes);
      const deleted = await context.client.stacks.delete(stack.id);
      if (wait === true) await context.client.stacks.waitUntilDeleted(stack.id, { signal: context.signal });
      else context.output.show(deleted, stackFields);
    });
}

function addUpgrade(stacks: CliCommand): void {
  stacks
    .command("upgrade <stack>")
    .description("upgrade a stack to the newest version of its template; without a cost, only show the changes")
    .option("--accept-cost <amount>", "accepted new monthly cost", amount)
    .option("--wait", "wait until it is completed")
    .needs("--wait", "--accept-cost")
    .example("stacks upgrade shop")
    .example("stacks upgrade shop --accept-cost 64.4 --wait")
    .does(async (context, name: string, { acceptCost, wait }: { acceptCost?: number; wait?: boolean }) => {
      const { client, output, signal } = context;
      const { id } = await stackOf(context, name);
      if (acceptCost === undefined) {
        const preview = await client.stacks.previewUpgrade(id);
        if (output.format !== "table") return output.show(preview);
        output.list(preview.changes, ["symbolic_name", "kind", "change", "action", "target_spec", "reason"]);
        output.info(`\n${preview.from_version} -> ${preview.to_version}`);
        const costs = `${preview.current_monthly_cost.toFixed(2)} -> ${preview.new_monthly_cost.toFixed(2)} a month`;
        return output.info(preview.blocked ? `blocked: ${preview.blocked_reasons.join(" ")}` : costs);
      }
      const migration = await client.stacks.upgrade(id, acceptCost);
      const { id: migrationId } = migration;
      const isFinished = wait !== true || migrationId === null;
      const migrated = isFinished ? migration : await client.stacks.waitForMigration(id, migrationId, { signal });
      output.show(migrated, migrationFields);
      if (output.format === "table") output.list(migrated.steps, stepColumns);
    });

  stacks
    .command("migrations <stack>")
    .description("list upgrades of a stack with their outcomes")
    .example("stacks migrations shop")
    .does(async (context, name: string) => {
      const { id } = await stackOf(context, name);
      context.output.list(await take(context.client.stacks.migrations(id)), migrationFields);
    });
}

function showStack({ output }: Context, stack: Stack): void {
  output.show(stack, stackFields);
  if (output.format === "table") output.list(stack.resources, resourceColumns);
}

/** Asks the user to accept the previewed cost. */
async function acceptedCost(context: Context, template: string): Promise<number> {
  const { monthly_total: total, currency } = await context.client.stacks.preview(template);
  await context.confirm(`It costs ${total.toFixed(2)} ${currency} a month. Launch it?`, undefined);
  return total;
}

function amount(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new UsageError(`${text} is not an amount such as 32.2`);
  return value;
}
