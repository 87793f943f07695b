import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { InvalidArgumentError, Option } from "commander";
import { ServiceFailed, type WaitOptions } from "@holdfast/sdk/wait.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { Interrupted } from "../exit-code.ts";
import { seconds } from "../flag-values.ts";
import { serviceFields } from "./service-fields.ts";

export interface WaitFlags {
  readonly wait?: boolean;
  readonly timeout: number;
}

const targets = ["Running", "Stopped", "deleted"] as const;
type Target = (typeof targets)[number];

/** Reads a target; `gone` is the former name of `deleted`. */
function targetOf(text: string): Target {
  const target = targets.find((each) => each === (text === "gone" ? "deleted" : text));
  if (target === undefined) throw new InvalidArgumentError(`Allowed choices are ${targets.join(", ")}.`);
  return target;
}

/** Adds the flags --wait and --timeout. */
export function withWait(command: CliCommand): CliCommand {
  return command
    .option("--wait", "wait until it is completed")
    .option("--timeout <duration>", "give up waiting after this time, such as 90s or 30m", seconds, 900)
    .needs("--timeout", "--wait");
}

export function addServiceWait(services: CliCommand): void {
  services
    .command("wait <service>")
    .description("wait until a service is Running, Stopped or deleted")
    .addOption(
      new Option("--for <status>", "status to wait for").choices(targets).default("Running").argParser(targetOf),
    )
    .option("--timeout <duration>", "give up after this time, such as 90s or 30m", seconds, 900)
    .example("services wait orders")
    .example("services wait orders --for deleted --timeout 60")
    .does(async (context, name: string, flags: { for: Target; timeout: number }) => {
      const service = await waitForService(context, await context.service(name), flags.for, flags.timeout);
      if (service !== undefined) context.output.show(service, serviceFields);
    });
}

/** Throws Interrupted with the command that waits again, if Ctrl-C has interrupted the wait. */
export function throwIfInterrupted({ signal, program }: Context, command: string): void {
  if (!signal.aborted || !(signal.reason instanceof Interrupted)) return;
  const { message, endsChildren } = signal.reason;
  throw new Interrupted(`${message}; the operation continues. To wait again: ${program} ${command}`, { endsChildren });
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
      onOutage: () => progress.outage(),
      onProgress: (summary) => progress.update(summary),
    };
    const { client } = context;
    return await (target === "deleted"
      ? client.waitFor(service, target, options)
      : client.waitFor(service, target, options));
  } catch (error) {
    throwIfInterrupted(context, `services wait ${service.name}${target === "Running" ? "" : ` --for ${target}`}`);
    if (error instanceof ServiceFailed) error.message = `${service.name}: ${error.message}`;
    throw error;
  } finally {
    progress.end();
  }
}
