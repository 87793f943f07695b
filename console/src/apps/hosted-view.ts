import type { AppChange, NewApp, NewAttachment } from "@holdfast/sdk/requests.ts";
import type {
  App,
  AppDeployment,
  AppDeploymentStatus,
  AppNode,
  Catalog,
  FilesAccess,
  HostedApp,
  ManagedService,
} from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { isOpen, monthlyCost } from "../services/service-view.ts";
import { type Tone, toneOf } from "../tone.ts";
import { linesOf } from "./app-view.ts";

/** Variables as text: a line "NAME=value" each, by name. */
export function environmentText(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join("\n");
}

/** The variables of a text with a line "NAME=value" each. */
export function environmentOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=")];
    }),
  );
}

/** The first fault of a text of variables; undefined without one. */
export function environmentFault(text: string): string | undefined {
  const names = new Set<string>();
  for (const line of linesOf(text)) {
    const [name = "", ...value] = line.split("=");
    if (value.length === 0) return `${name} has no value: write ${name}=value.`;
    if (names.has(name.trim())) return `${name} is set twice.`;
    names.add(name.trim());
  }
  return undefined;
}

/** A secret variable in a form. The value of one that is set is empty until the user enters another. */
export interface SecretVariable {
  readonly name: string;
  readonly value: string;
}

/** The named secret variables of a form. */
function namedOf(variables: readonly SecretVariable[]): readonly SecretVariable[] {
  return variables.map(({ name, value }) => ({ name: name.trim(), value })).filter(({ name }) => name !== "");
}

/** The change of secret variables: those with a value are set, and those without a row are removed. */
export function secretsChangeOf(
  variables: readonly SecretVariable[],
  before: readonly string[],
): Pick<AppChange, "set_secret_env" | "unset_secret_env"> {
  const named = namedOf(variables);
  const set = named.filter(({ value }) => value !== "").map(({ name, value }) => [name, value] as const);
  const unset = before.filter((name) => !named.some((each) => each.name === name));
  return {
    ...(set.length > 0 && { set_secret_env: Object.fromEntries(set) }),
    ...(unset.length > 0 && { unset_secret_env: unset }),
  };
}

/** The reason why the secret variables cannot be sent: a new one has no value, or a name is used twice. */
export function secretsFault(variables: readonly SecretVariable[], before: readonly string[]): string | undefined {
  const names = new Set<string>();
  for (const { name, value } of namedOf(variables)) {
    if (names.has(name)) return `${name} is set twice.`;
    if (value === "" && !before.includes(name)) return `Enter the value of ${name}.`;
    names.add(name);
  }
  return undefined;
}

/** The input of the form that deploys an image. */
export interface DeploymentInput {
  readonly image: string;
  readonly port: string;
  readonly command: string;
  readonly env: string;
  readonly secrets: readonly SecretVariable[];
  readonly healthPath: string;
}

export function deploymentInputOf(hosted: HostedApp | null): DeploymentInput {
  return {
    image: hosted?.image_ref ?? "",
    port: String(hosted?.port ?? 8080),
    command: (hosted?.command ?? []).join("\n"),
    env: environmentText(hosted?.env ?? {}),
    secrets: (hosted?.secret_env_names ?? []).map((name) => ({ name, value: "" })),
    healthPath: hosted?.health_check_path ?? "",
  };
}

/** True if the settings of the app are those that serve: no deployment is in progress, or nothing serves yet. */
export function isSettled({
  deployment_number: number,
  serving_deployment_number: serving,
}: Pick<HostedApp, "deployment_number" | "serving_deployment_number">): boolean {
  return serving === null || number === serving;
}

/** The secret variables of a form without the values that the app has. */
export function withoutValues(
  variables: readonly SecretVariable[],
  names: readonly string[],
): readonly SecretVariable[] {
  return variables.map((each) => (names.includes(each.name.trim()) ? { ...each, value: "" } : each));
}

/** The change of a hosted app that deploys the form: its image, and the settings that differ. */
export function deploymentOf(input: DeploymentInput, hosted: HostedApp): AppChange {
  const before = deploymentInputOf(hosted);
  const path = input.healthPath.trim();
  return {
    image_ref: input.image.trim(),
    ...(input.port !== before.port && { port: Number(input.port) }),
    ...(input.command !== before.command && { command: linesOf(input.command) }),
    ...(input.env !== before.env && { env: environmentOf(input.env) }),
    ...secretsChangeOf(input.secrets, hosted.secret_env_names),
    ...(path !== before.healthPath && { health_check_path: path === "" ? null : path }),
  };
}

/** The input of the form for a new app. */
export interface NewAppInput extends DeploymentInput {
  readonly name: string;
  /** "platform" for a hosted app. */
  readonly hosting: string;
  readonly home: string;
  readonly plan: string;
  readonly storageGb: string;
  readonly replicas: string;
}

/** The request for a new app: with an image it runs on machines of the platform. */
export function newAppOf(input: NewAppInput): NewApp {
  const { name, home, plan } = input;
  const common = { name, ...(home !== "" && { home_url: home }) };
  if (input.hosting !== "platform") return common;
  const { set_secret_env: secrets } = secretsChangeOf(input.secrets, []);
  const path = input.healthPath.trim();
  return {
    ...common,
    image_ref: input.image.trim(),
    port: Number(input.port),
    command: linesOf(input.command),
    env: environmentOf(input.env),
    ...(secrets !== undefined && { secret_env: secrets }),
    ...(path !== "" && { health_check_path: path }),
    ...(plan !== "" && { plan_name: plan }),
    storage_size_gb: Number(input.storageGb),
    replicas: Number(input.replicas),
  };
}

/** The plans of containers, in which apps run. */
export function appPlans(catalog: Pick<Catalog, "plans">): Catalog["plans"] {
  return catalog.plans.filter(({ kind }) => kind === "container");
}

/** Size and cost of a new app's machines: the request names no tier, so it is the default. */
export function newAppSize(
  catalog: Catalog,
  { plan, storageGb, replicas }: Pick<NewAppInput, "plan" | "storageGb" | "replicas">,
): { readonly machine: string; readonly cost: string } {
  const planName = plan || (appPlans(catalog)[0]?.plan_name ?? "");
  const tier = catalog.storage_tiers[0]?.storage_tier ?? "";
  const size = { plan_name: planName, storage_tier: tier, storage_size_gb: Number(storageGb), nodes: Number(replicas) };
  const cost = monthlyCost(catalog, size);
  return {
    machine: `${planName}, ${storageGb} GB ${tier}`,
    cost: cost === undefined || Number.isNaN(cost) ? "unknown" : priceText(cost, catalog.currency),
  };
}

// biome-ignore format: a table, aligned so that it reads as one
const deploymentTones: Readonly<Record<AppDeploymentStatus, Tone>> = {
  deploying: "busy",
  succeeded: "none",
  failed:    "bad",
};

/** State of a deployment: "serves" for the one that clients reach. */
export function deploymentState({ status, serves }: AppDeployment): { readonly text: string; readonly tone: Tone } {
  return serves ? { text: "serves", tone: "good" } : { text: status, tone: deploymentTones[status] };
}

/** The problem of an app, as texts for users. */
export interface Problem {
  readonly tone: "bad" | "warn";
  readonly title: string;
  readonly reason: string;
  /** The effect on clients, and the next step. */
  readonly advice: string;
  /** Number of the deployment that failed; undefined if none did. */
  readonly failed?: number;
  readonly lines: readonly string[];
}

/** The problem of a hosted app; undefined without one. */
export function problemOf({ status, operation }: App, hosted: HostedApp): Problem | undefined {
  const { reason, failed_deployment_number: failed, serving_deployment_number: serving } = hosted;
  if (reason === null) return undefined;
  if (status === "Error" && serving !== null)
    return {
      tone: "bad",
      title: "The app has failed",
      reason,
      advice: "Clients get 503. The machines start the program again until it is healthy: its log has the cause.",
      lines: hosted.last_lines,
    };
  if (failed !== null)
    return {
      tone: "bad",
      title: `Deployment ${failed} (${hosted.failed_image_ref ?? ""}) failed`,
      reason,
      advice:
        serving === null
          ? "Nothing serves, so clients get 503. Correct the image or its settings, then deploy again."
          : `Deployment ${serving} (${hosted.serving_image_ref ?? ""}) serves on, so clients notice nothing. ` +
            "Correct the image or its settings, then deploy again.",
      failed,
      lines: hosted.last_lines,
    };
  const [title, advice] = isOpen(operation)
    ? ["The deployment is delayed", "It is tried again until it has made no progress for too long."]
    : ["The app is not healthy", "The machines start the program again until it is healthy: its log has the cause."];
  return { tone: "warn", title, reason, advice, lines: [] };
}

/** The newest deployment of another image that served before the one that serves; undefined without one. */
export function wayBack(deployments: readonly AppDeployment[]): AppDeployment | undefined {
  const serving = deployments.find(({ serves }) => serves);
  return deployments
    .toSorted((a, b) => b.number - a.number)
    .find(
      ({ number, status, image_digest: digest }) =>
        serving !== undefined && status === "succeeded" && number < serving.number && digest !== serving.image_digest,
    );
}

/** State of a machine: one that has no release to run does not start anything. */
export function machineState(
  { status, deployment_id: release }: AppNode,
  app: App,
): { readonly text: string; readonly tone: Tone } {
  const isIdle = status === "Starting" && release === null && (app.status === "Error" || app.status === "Stopped");
  return isIdle ? { text: "no release", tone: "none" } : { text: status, tone: toneOf(status) };
}

/** The reason why an app cannot be changed now; undefined if it can. */
export function changeRefusal({ operation, managed_by: parent }: App): string | undefined {
  if (parent !== null) return `The app belongs to a ${parent.kind}, which changes it.`;
  return isOpen(operation) ? "Another operation is in progress." : undefined;
}

/** A resource that can be attached to an app. */
export interface Attachable {
  readonly id: string;
  readonly title: string;
  /** The engine of a service, "files" or "app". */
  readonly kind: string;
}

/** The resources that can be attached to the app: of those that run outside, only PostgreSQL and files services. */
export function attachableTo(
  app: App,
  services: readonly ManagedService[],
  files: readonly ManagedService[],
  apps: readonly App[],
): readonly Attachable[] {
  const isHosted = app.hosted !== null;
  const ofServices = services
    .filter(({ database_type: type }) => isHosted || type === "postgresql")
    .map(({ id, name, database_type: kind }) => ({ id, title: `${name} (${kind})`, kind }));
  const ofFiles = files.map(({ id, name }) => ({ id, title: `${name} (files)`, kind: "files" }));
  const ofApps = apps
    .filter(({ id, hosted }) => isHosted && hosted !== null && id !== app.id)
    .map(({ id, name }) => ({ id, title: `${name} (app)`, kind: "app" }));
  const attached = new Set(app.attachments.map(({ kind, service_id: id }) => (isDatabase(kind) ? "" : id)));
  return [...ofServices, ...ofFiles, ...ofApps].filter(({ id }) => !attached.has(id));
}

/** True for a kind of attachment whose databases are attached one by one. */
export function isDatabase(kind: string): boolean {
  return kind !== "files" && kind !== "app";
}

/** The input of the form that attaches a resource. */
export interface AttachmentInput {
  readonly database: string;
  readonly prefix: string;
  readonly access: string;
}

export function attachmentOf(target: Attachable, input: AttachmentInput): NewAttachment {
  const access: FilesAccess = input.access === "readonly" ? "readonly" : "readwrite";
  return {
    service_id: target.id,
    ...(isDatabase(target.kind) && input.database !== "" && { database_name: input.database }),
    ...(target.kind === "files" && { access }),
    ...(input.prefix !== "" && { prefix: input.prefix }),
  };
}
