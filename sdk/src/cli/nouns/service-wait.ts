import type { ManagedService } from "../../responses.ts";
import { Option } from "commander";
import { ServiceFailed, type WaitOptions } from "../../wait.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { integer } from "../flag-values.ts";
import { serviceFields } from "./service-fields.ts";

export interface WaitFlags {
  readonly wait?: boolean;
  readonly timeout: number;
}

const targets = ["Running", "Stopped", "gone"] as const;
type Target = (typeof targets)[number];

/** Adds the flags --wait and --timeout. */
export function withWait(command: CliCommand): CliCommand {
  return command
    .option("--wait", "wait until it is completed")
    .option("--timeout <seconds>", "give up waiting after this time", integer, 900);
}

export function addServiceWait(services: CliCommand): void {
  services
    .command("wait <service>")
    .description("wait until a service is Running, Stopped or deleted (gone)")
    .addOption(new Option("--for <status>", "status to wait for").choices(targets).default("Running"))
    .option("--timeout <seconds>", "give up after this time", integer, 900)
    .example("services wait orders")
    .example("services wait orders --for gone --timeout 60")
    .does(async (context, name: string, flags: { for: Target; timeout: number }) => {
      const service = await waitForService(context, await context.service(name), flags.for, flags.timeout);
      if (service !== undefined) context.output.show(service, serviceFields);
    });
}

/** Waits and shows progress. Undefined for a deleted service. Throws WaitTimedOut and ServiceFailed. */
export async function waitForService(
  context: Context,
  service: ManagedService,
  target: Target,
  timeoutSeconds: number,
): Promise<ManagedService | undefined> {
  const progress = context.progress(service.name);
  try {
    const options: WaitOptions = {
      timeoutMs: timeoutSeconds * 1000,
      signal: context.signal,
      onProgress: (summary) => progress.update(summary),
    };
    const { client } = context;
    return await (target === "gone"
      ? client.waitFor(service, target, options)
      : client.waitFor(service, target, options));
  } catch (error) {
    if (error instanceof ServiceFailed) error.message = `${service.name}: ${error.message}`;
    throw error;
  } finally {
    progress.end();
  }
}
