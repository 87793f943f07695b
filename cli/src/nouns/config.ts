import type { Configuration, ParameterState } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { waitIfRequested } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

const columns = ["name", "value", "default", "status", "reason"];

export function addConfig(config: CliCommand): void {
  config
    .command("get <service>")
    .description("list the parameters of a service with their values")
    .example("config get orders")
    .does(async (context, name: string) =>
      show(context, await context.client.configuration.get(await context.serviceId(name))),
    );

  withWait(
    config
      .command("set <service> <changes...>")
      .description("set parameters: name=value sets a parameter, name without a value resets it to its default"),
  )
    .example("config set orders work_mem=16MB max_connections=200")
    .example("config set orders work_mem")
    .does(async (context, name: string, changes: string[], flags: WaitFlags) => {
      const parameters = Object.fromEntries(
        changes.map((change) => {
          const equals = change.indexOf("=");
          return equals < 0 ? [change, null] : [change.slice(0, equals), change.slice(equals + 1)];
        }),
      );
      const { configuration } = context.client;
      const id = await context.serviceId(name);
      const changed = await configuration.update(id, parameters);
      const isDone = await waitIfRequested(context, changed.operation, name, flags);
      const wasAwaited = changed.operation !== null && isDone;
      const { parameters: all, ...rest } = wasAwaited ? await configuration.get(id) : changed;
      const named = Object.entries(all).filter(([parameter]) => Object.hasOwn(parameters, parameter));
      if (context.output.format !== "table") return show(context, { ...rest, parameters: all });
      show(context, { ...rest, parameters: Object.fromEntries(named) });
      if (named.some(([, { status }]) => status === "pending_restart"))
        context.output.info(`A restart is due: ${context.program} services restart ${name}`);
    });
}

function show({ output }: Context, { parameters }: Configuration): void {
  output.list(
    Object.entries(parameters).map(([name, state]) => ({ name, ...state })),
    columns,
  );
  // An installation of an earlier release returns no warnings.
  for (const [name, { warning }] of Object.entries<Partial<ParameterState>>(parameters))
    if (warning != null) output.info(`${name}: ${warning}`);
}
