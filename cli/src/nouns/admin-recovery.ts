import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { importLocalModule } from "../local-installation.ts";

/** Exports of the local package for `admin restore`, which runs while the platform is stopped. */
interface LocalRestore {
  restoreControlPlane(options: {
    readonly dataDirectory: string;
    readonly backupId: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<void>;
}

/** Exports of the local package for `admin recover`, which runs while the platform is stopped. */
interface LocalRecover {
  runServiceRecovery(options: {
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

/** Commands for snapshots of the control plane, and for the recovery of services from an object store. */
export function addRecovery(admin: CliCommand): void {
  admin
    .command("backup")
    .description("write an encrypted snapshot of the control plane to the object store")
    .example("admin backup")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>("ControlService", "BackupControlPlane")),
    );

  admin
    .command("restore [backup]")
    .description(
      "restore the control plane of this host's installation, by default from the newest backup; stop the platform first",
    )
    .option("--yes", "do not ask for confirmation")
    .example("admin restore")
    .does(async (context, backupId: string | undefined, { yes }: { yes?: boolean }) => {
      const local = await importLocalModule<LocalRestore>("restore-control-plane.ts");
      if (local === undefined) throw new UsageError("this installation of the command line cannot restore");
      const { dataDirectory, signal, confirm } = context;
      await confirm(`Restore the control plane in ${dataDirectory}?`, yes);
      await local.restoreControlPlane({ dataDirectory, backupId, signal });
    });

  admin
    .command("recover")
    .description("recover services from an object store into a new installation; stop the platform first")
    .requiredOption("--objects <url>", "URL of the object store: an absolute directory, file:///... or s3://...")
    .requiredOption("--master-key <file>", "file of the master keys of the former installation")
    .option("--objects-key <file>", "credential file of an S3 store: JSON with id and secret")
    .option("--yes", "do not ask for confirmation")
    .example("admin recover --objects file:///mnt/objects --master-key master-key.json")
    .does(async (context, { objects, masterKey, objectsKey, yes }: RecoverFlags) => {
      const local = await importLocalModule<LocalRecover>("recover-services.ts");
      if (local === undefined) throw new UsageError("this installation of the command line cannot recover");
      if (objectsKey !== undefined && !objects.startsWith("s3:"))
        throw new UsageError("--objects-key has no effect without --objects s3://...");
      const { dataDirectory, signal, confirm, output } = context;
      await confirm(`Create an installation in ${dataDirectory} with the services of ${objects}?`, yes);
      const recovered = await local.runServiceRecovery({ dataDirectory, objects, masterKey, objectsKey, signal });
      output.list(recovered, ["id", "name", "outcome", "to", "replayMemoryGb", "reason"]);
      output.info(
        "the next `npm start` creates these services; run `holdfast admin resume-automation restored` after checking them",
      );
    });
}
