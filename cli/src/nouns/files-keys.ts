import type { FilesAccess } from "@holdfast/sdk/responses.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { filesOf, notFound } from "../lookup.ts";

const accesses: readonly FilesAccess[] = ["readwrite", "readonly"];
const columns = ["name", "access", "access_key_id", "id", "created_at"];

export function addFilesKeys(keys: CliCommand): void {
  keys
    .command("create <files>")
    .description("create a key; its secret is shown only once")
    .option("--name <name>", "name of the key; its access by default")
    .addOption(new Option("--access <access>", "what the key may do").choices(accesses).default("readwrite"))
    .example("files keys create media --access readonly")
    .example("files keys create media --name shop")
    .does(async (context, files: string, { name, access }: { name?: string; access: FilesAccess }) => {
      const { id } = await filesOf(context, files);
      context.output.show(await context.client.files.createKey(id, { name: name ?? access, access }));
    });

  keys
    .command("list <files>")
    .description("list the keys of a files service, without their secrets")
    .example("files keys list media")
    .does(async (context, files: string) => {
      const { id } = await filesOf(context, files);
      context.output.list(await take(context.client.files.keys(id)), columns);
    });

  keys
    .command("delete <files> <name>")
    .description("revoke a key by its name or access key id; its requests are refused within 5 s")
    .option("--yes", "do not ask for confirmation")
    .example("files keys delete media shop")
    .does(async (context, files: string, name: string, { yes }: { yes?: boolean }) => {
      const { id } = await filesOf(context, files);
      const all = await take(context.client.files.keys(id));
      const key = all.find((each) => [each.name, each.access_key_id, each.id].includes(name));
      if (key === undefined) throw notFound("files key", name);
      await context.confirm(`Revoke the key ${key.name} (${key.access_key_id})?`, yes);
      await context.client.files.deleteKey(id, key.id);
      context.output.info(`${key.name} is revoked`);
    });
}
