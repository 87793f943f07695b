import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { localModule } from "../local-module.ts";

/** What the local installation gives for `admin restore`; it runs while the platform is down. */
interface LocalRestore {
  restoreControlPlane(options: {
    readonly dataDirectory: string;
    readonly backupId: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<void>;
}

/** What the local installation gives for `admin recover`; it runs while the platform is down. */
interface LocalRecover {
  recoverServices(options: {
    readonly dataDirectory: string;
    readonly objects: string;
    readonly masterKey: string;
    readonly objectsKey: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<readonly { readonly id: string; readonly name: string; readonly outcome: string }[]>;
}

interface RecoverFlags {
  readonly objects: string;
  readonly masterKey: string;
  readonly objectsKey?: string;
  readonly yes?: boolean;
}

/** Snapshots of the control plane itself, and services that are left in the object store alone. */
export function addRecovery(admin: CliCommand): void {
  admin
    .command("backup")
    .description("write a sealed snapshot of the control plane to the object store")
    .example("admin backup")
    .does(async ({ person, output }) =>
      output.show(await (await person()).admin<object>("ControlService", "BackupControlPlane")),
    );

  admin
    .command("restore [backup]")
    .description(
      "set the control plane of this host's installation back, the newest backup by default; stop the platform first",
    )
    .option("--yes", "do not ask")
    .example("admin restore")
    .does(async (context, backupId: string | undefined, { yes }: { yes?: boolean }) => {
      const local = await localModule<LocalRestore>("restore-control-plane.ts");
      if (local === undefined) throw new UsageError("this build has no restore");
      const { dataDirectory, signal, confirm } = context;
      await confirm(`Set the control plane in ${dataDirectory} back?`, yes);
      await local.restoreControlPlane({ dataDirectory, backupId, signal });
    });

  admin
    .command("recover")
    .description("bring services back out of an object store alone, under their names; stop the platform first")
    .requiredOption("--objects <url>", "the store: an absolute directory, file:///... or s3://...")
    .requiredOption("--master-key <file>", "the master keys of the installation that wrote it")
    .option("--objects-key <file>", "credential of an S3 store: JSON with id and secret")
    .option("--yes", "do not ask")
    .example("admin recover --objects file:///mnt/objects --master-key master-key.json")
    .does(async (context, { objects, masterKey, objectsKey, yes }: RecoverFlags) => {
      const local = await localModule<LocalRecover>("recover-services.ts");
      if (local === undefined) throw new UsageError("this build has no recovery");
      const { dataDirectory, signal, confirm, output } = context;
      await confirm(`Make ${dataDirectory} an installation with the services of ${objects}?`, yes);
      const recovered = await local.recoverServices({ dataDirectory, objects, masterKey, objectsKey, signal });
      output.list(recovered, ["id", "name", "outcome", "to", "reason"]);
      output.say(
        "the next `npm start` makes those that recover; `holdfast admin release-hold restored` once you have looked",
      );
    });
}
