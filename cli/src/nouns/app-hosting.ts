import type { AppChange, NewApp } from "@holdfast/sdk/requests.ts";
import type { App, HostedApp, HostedAppAuth, Operation } from "@holdfast/sdk/responses.ts";
import { OperationFailed } from "@holdfast/sdk/wait.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { collect, collectPairs, integer, omitUndefined, seconds } from "../flag-values.ts";
import { appOf } from "../lookup.ts";
import { readSecrets } from "../secret-value.ts";
import { waitForOperation } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

interface ReleaseFlags {
  readonly image?: string;
  readonly port?: number;
  readonly command?: string[];
  readonly env?: Record<string, string>;
  readonly secretEnv?: string[];
  readonly fromFile?: Readonly<Record<string, string>>;
  readonly healthPath?: string;
  readonly startTimeout?: number;
  readonly drain?: number;
}

type SecretFlags = Pick<ReleaseFlags, "fromFile">;

interface CreateFlags extends ReleaseFlags, WaitFlags {
  readonly home?: string;
  readonly plan?: string;
  readonly storageGb?: number;
  readonly zone?: string;
  readonly replicas?: number;
  readonly auth?: HostedAppAuth;
}

/** Lifetime of the credentials for the registry, in seconds. */
const registryLoginS = 3_600;

export const appColumns = ["name", "id", "status", "serves", "newest", "reason", "url", "home_url", "attached"];

const auths: readonly HostedAppAuth[] = ["none", "login_form"];

export function authOption(): Option {
  return new Option("--auth <auth>", "sign-in in front of a hosted app; none by default").choices(auths);
}

/**
 * The app as commands show it, with the most important fields of its hosting beside the others. `newest` is a
 * deployment that does not serve: one in progress, or one that failed.
 */
export function appView(app: App): object {
  const { hosted, operation } = app;
  const attached = app.attachments.map(({ kind }) => kind);
  if (hosted === null) return { ...app, attached };
  const { url, image_ref, reason, serving_image_ref: image, serving_deployment_number: number } = hosted;
  return {
    ...app,
    attached,
    url,
    image_ref,
    reason,
    serves: image && number ? deploymentText(image, number) : null,
    newest: newestText(hosted, operation !== null),
  };
}

/** The newest deployment unless it serves. */
function newestText(hosted: HostedApp, isInProgress: boolean): string | null {
  if (hosted.failed_deployment_number !== null)
    return `${deploymentText(hosted.failed_image_ref ?? "", hosted.failed_deployment_number)}: failed`;
  if (hosted.serves_newest) return null;
  const result = isInProgress ? "in progress" : "does not serve";
  return `${deploymentText(hosted.image_ref, hosted.deployment_number)}: ${result}`;
}

function deploymentText(imageRef: string, number: number): string {
  return `${imageRef} (deployment ${number})`;
}

/** Shows an app, with the last lines of a release that failed. */
export function showApp({ output }: Pick<Context, "output">, app: App): void {
  output.show(appView(app), appColumns);
  showLastLines({ output }, app);
}

function showLastLines({ output }: Pick<Context, "output">, app: App): void {
  const lines = app.hosted?.last_lines ?? [];
  if (lines.length === 0) return;
  output.info(`\nThe last lines of ${app.hosted?.serves_newest === true ? "the program" : "the failed release"}:`);
  for (const line of lines) output.info(`  ${line}`);
}

const fromFile = [
  "--from-file <name=file>",
  "secret variable whose value is in a file, or in standard input for - (repeatable); others remain",
  collectPairs,
] as const;

function releaseFlags(command: CliCommand): CliCommand {
  return command
    .option("--port <port>", "port on which the program listens; 8080 by default", integer)
    .option("--command <word>", "program, then each argument, in place of the image's (repeatable)", collect)
    .option("--env <name=value>", "variable (repeatable); replaces all", collectPairs)
    .option("--secret-env <name>", "secret variable, whose value is requested (repeatable); others remain", collect)
    .option(...fromFile)
    .option("--health-path <path>", "path that responds once a release is ready")
    .option("--start-timeout <duration>", "time in which a release becomes ready; 60s by default", seconds)
    .option("--drain <duration>", "time for requests in progress after a deployment; 30s by default", seconds);
}

/** Values of secret variables, which the user types or which are in files; undefined without one. */
async function secretsOf(
  context: Pick<Context, "terminal">,
  ask: readonly string[] = [],
  files: Readonly<Record<string, string>> = {},
): Promise<Record<string, string> | undefined> {
  if (ask.length === 0 && Object.keys(files).length === 0) return undefined;
  return readSecrets(context, { ask, files, titleOf: (name) => `Value of ${name}` });
}

/** The fields of a request that are a deployment. */
type Release = Pick<
  NewApp,
  "image_ref" | "port" | "command" | "env" | "secret_env" | "start_timeout_seconds" | "drain_seconds"
> & { health_check_path?: string };

async function releaseOf(context: Context, flags: ReleaseFlags): Promise<Release> {
  const { image, port, command, env, secretEnv, fromFile, healthPath, startTimeout, drain } = flags;
  return omitUndefined({
    image_ref: image,
    port,
    command,
    env,
    secret_env: await secretsOf(context, secretEnv, fromFile),
    health_check_path: healthPath,
    start_timeout_seconds: startTimeout,
    drain_seconds: drain,
  });
}

/** Waits for the operation of an app. If it fails, the last lines of the release are printed before the error. */
export async function waitForDeployment(
  context: Context,
  operation: Operation,
  appId: string,
  title: string,
  timeoutSeconds: number,
): Promise<void> {
  try {
    await waitForOperation(context, operation, title, timeoutSeconds);
  } catch (error) {
    if (error instanceof OperationFailed)
      await context.client.apps.get(appId).then(
        (app) => showLastLines(context, app),
        () => undefined,
      );
    throw error;
  }
}

/** Shows the app after a change, at the end of its operation with --wait. */
async function showChanged(context: Context, app: App, title: string, flags: WaitFlags): Promise<void> {
  const { client, output, program } = context;
  if (flags.wait === true && app.operation !== null) {
    await waitForDeployment(context, app.operation, app.id, title, flags.timeout);
    showApp(context, await client.apps.get(app.id));
    return;
  }
  showApp(context, app);
  if (app.hosted === null)
    output.info(`\n${title} runs outside of the platform, which hosts nothing: an app with --image runs here.`);
  if (app.operation !== null) output.info(`To wait for it: ${program} operations wait ${app.operation.id}`);
}

export function addAppHosting(apps: CliCommand): void {
  const create = apps
    .command("create <name>")
    .description("register an app that you run yourself, or run an image with --image")
    .option("--home <url>", "URL of the app's home page")
    .option("--image <image>", "image in the platform's registry, such as shop:1");
  releaseFlags(create)
    .option("--plan <plan>", "plan of each machine; the smallest by default")
    .option("--storage-gb <gb>", "storage of each machine for images; 10 by default", integer)
    .option("--zone <zone>", "zone of the machines")
    .option("--replicas <count>", "number of machines; 1 by default", integer)
    .addOption(authOption());
  withWait(create)
    .example("apps create shop --image shop:1 --port 8080 --wait")
    .example("apps create shop --home https://shop.example")
    .does(async (context, name: string, flags: CreateFlags) => {
      const body: NewApp = {
        name,
        ...(await releaseOf(context, flags)),
        ...omitUndefined({
          home_url: flags.home,
          plan_name: flags.plan,
          storage_size_gb: flags.storageGb,
          zone: flags.zone,
          replicas: flags.replicas,
          auth: flags.auth,
        }),
      };
      await showChanged(context, await context.client.apps.create(body), name, flags);
    });

  const deploy = apps
    .command("deploy <app>")
    .description("replace what a hosted app runs: its image, variables, port, command, health check or times")
    .option("--image <image>", "image in the platform's registry, such as shop:2");
  withWait(releaseFlags(deploy))
    .example("apps deploy shop --image shop:2 --wait")
    .example("apps deploy shop --drain 60s --start-timeout 2m --wait")
    .does(async (context, nameOrId: string, flags: ReleaseFlags & WaitFlags) => {
      const { id, name } = await appOf(context, nameOrId);
      const { secret_env: set_secret_env, ...release } = await releaseOf(context, flags);
      // Other secret variables remain: nothing returns their values.
      const change = { ...release, ...omitUndefined({ set_secret_env }) };
      await showChanged(context, await context.client.apps.update(id, change), name, flags);
    });
  addVariables(apps);

  apps
    .command("deployments <app>")
    .description("list the newest deployments of a hosted app")
    .example("apps deployments shop")
    .does(async (context, app: string) => {
      const { id } = await appOf(context, app);
      const { deployments } = await context.client.apps.deployments(id);
      context.output.list(deployments, ["number", "id", "status", "image_ref", "serves", "created_at", "reason"]);
    });

  const rollback = apps
    .command("rollback <app> [deployment]")
    .description("deploy an earlier deployment again, by its id; the one before the one that serves by default");
  withWait(rollback)
    .example("apps rollback shop --wait")
    .does(async (context, nameOrId: string, deployment: string | undefined, flags: WaitFlags) => {
      const { id, name } = await appOf(context, nameOrId);
      await showChanged(context, await context.client.apps.rollBack(id, deployment), name, flags);
    });

  addPower(apps);

  apps
    .command("registry-login")
    .description("print the registry of images, and a user name and password for it that are valid for an hour")
    .example("apps registry-login")
    .does(async ({ client, output }) => {
      const { host, repository } = await client.apps.registry();
      const { token } = await client.tokens.create({ scopes: ["apps:write"], ttl_seconds: registryLoginS });
      output.show({ registry: host, repository: `${host}/${repository}`, username: "token", password: token });
      output.info(`
To push an image, after docker build -t shop:1 .
  docker login ${host} --username token --password-stdin
  docker tag shop:1 ${host}/${repository}/shop:1
  docker push ${host}/${repository}/shop:1
Docker trusts the registry by its certificate authority in /etc/docker/certs.d/${host}/ca.crt.`);
    });

  addFloatingIp(apps.command("floating-ip").description("address that belongs to a hosted app alone"));

  apps
    .command("credentials <app>")
    .description("print the user name and the password of a hosted app's login form")
    .example("apps credentials shop")
    .does(async (context, app: string) => {
      const { id } = await appOf(context, app);
      context.output.show({ ...(await context.client.apps.credentials(id)) });
    });

  apps
    .command("nodes <app>")
    .description("list the machines of a hosted app")
    .example("apps nodes shop")
    .does(async (context, app: string) => {
      const { id } = await appOf(context, app);
      const { nodes } = await context.client.apps.nodes(id);
      context.output.list(nodes, ["id", "status", "zone", "deployment_id", "agent_build", "floating_ip"]);
    });
}

/** Commands that change some variables of an app. Each change is a deployment. */
function addVariables(apps: CliCommand): void {
  const env = apps.command("env").description("variables of a hosted app");
  env
    .command("list <app>")
    .description("list the variables of a hosted app, and the names of its secret ones")
    .example("apps env list shop")
    .does(async (context, nameOrId: string) => {
      const { hosted } = await appOf(context, nameOrId);
      const variables = Object.entries(hosted?.env ?? {}).map(([name, value]) => ({ name, value, secret: false }));
      const secrets = (hosted?.secret_env_names ?? []).map((name) => ({ name, value: null, secret: true }));
      context.output.list([...variables, ...secrets], ["name", "value", "secret"]);
    });
  const set = env.command("set <app> <name=value...>").description("add or change variables; the others remain");
  withWait(set)
    .example("apps env set shop LOG_LEVEL=debug --wait")
    .does(async (context, nameOrId: string, pairs: string[], flags: WaitFlags) => {
      const set_env = pairs.reduce<Record<string, string>>((before, pair) => collectPairs(pair, before), {});
      await change(context, nameOrId, { set_env }, flags);
    });
  const unset = env.command("unset <app> <name...>").description("remove variables");
  withWait(unset)
    .example("apps env unset shop LOG_LEVEL --wait")
    .does(async (context, nameOrId: string, unset_env: string[], flags: WaitFlags) =>
      change(context, nameOrId, { unset_env }, flags),
    );

  const secretEnv = apps.command("secret-env").description("secret variables of a hosted app, which nothing returns");
  secretEnv
    .command("list <app>")
    .description("list the names of the secret variables of a hosted app")
    .example("apps secret-env list shop")
    .does(async (context, nameOrId: string) => {
      const { hosted } = await appOf(context, nameOrId);
      const names = (hosted?.secret_env_names ?? []).map((name) => ({ name }));
      context.output.list(names, ["name"]);
    });
  const setSecret = secretEnv
    .command("set <app> [name...]")
    .description("add or change secret variables, whose values are requested or in files; the others remain")
    .option(...fromFile);
  withWait(setSecret)
    .example("apps secret-env set shop API_KEY --wait")
    .example("apps secret-env set shop --from-file TLS_KEY=key.pem --wait")
    .does(async (context, nameOrId: string, names: string[], flags: SecretFlags & WaitFlags) => {
      const set_secret_env = await secretsOf(context, names, flags.fromFile);
      if (set_secret_env === undefined) throw new UsageError("name a variable, or use --from-file NAME=FILE");
      await change(context, nameOrId, { set_secret_env }, flags);
    });
  const unsetSecret = secretEnv.command("unset <app> <name...>").description("remove secret variables");
  withWait(unsetSecret)
    .example("apps secret-env unset shop API_KEY --wait")
    .does(async (context, nameOrId: string, unset_secret_env: string[], flags: WaitFlags) =>
      change(context, nameOrId, { unset_secret_env }, flags),
    );

  async function change(context: Context, nameOrId: string, fields: AppChange, flags: WaitFlags): Promise<void> {
    const { id, name } = await appOf(context, nameOrId);
    await showChanged(context, await context.client.apps.update(id, fields), name, flags);
  }
}

function addFloatingIp(floatingIp: CliCommand): void {
  floatingIp
    .command("assign <app>")
    .description("give a hosted app a free address, which its name resolves to from then on")
    .example("apps floating-ip assign shop")
    .does(async (context, app: string) => {
      const { id } = await appOf(context, app);
      const { name, hosted } = await context.client.apps.assignFloatingIp(id);
      context.output.show({ name, floating_ip: hosted?.floating_ip ?? null });
    });

  floatingIp
    .command("release <app>")
    .description("release the address of a hosted app, which another app may get")
    .example("apps floating-ip release shop")
    .does(async (context, app: string) => {
      const { id, name, hosted } = await appOf(context, app);
      await context.client.apps.releaseFloatingIp(id);
      const address = hosted?.floating_ip;
      context.output.info(address ? `${name} has released ${address}` : `${name} had no floating IP`);
    });
}

/** Commands that stop, start, restart and scale. */
function addPower(apps: CliCommand): void {
  const verbs = {
    stop: "stop a hosted app: clients get 503; its machines and its name remain",
    start: "start a stopped app",
    restart: "deploy what serves of a hosted app again, without a failed request",
  } as const;
  for (const verb of ["stop", "start", "restart"] as const)
    withWait(apps.command(`${verb} <app>`).description(verbs[verb]))
      .example(`apps ${verb} shop --wait`)
      .does(async (context, nameOrId: string, flags: WaitFlags) => {
        const { id, name } = await appOf(context, nameOrId);
        await showChanged(context, await context.client.apps[verb](id), name, flags);
      });

  const scale = apps
    .command("scale <app>")
    .description("change the number of machines of a hosted app")
    .requiredOption("--replicas <count>", "number of machines, from 1 to 10", integer);
  withWait(scale)
    .example("apps scale shop --replicas 2 --wait")
    .does(async (context, nameOrId: string, { replicas, ...flags }: WaitFlags & { replicas: number }) => {
      const { id, name } = await appOf(context, nameOrId);
      await showChanged(context, await context.client.apps.update(id, { replicas }), name, flags);
    });
}
