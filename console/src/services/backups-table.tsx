import type { Backup } from "@holdfast/sdk/responses.ts";
import { bytesText, durationText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import type { Live } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { Age, Badge } from "../parts/parts.tsx";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { deletionRefusal, isUnfinished, nameOfBackup, verificationRefusal } from "./backups-view.ts";
import type { TabProps } from "./tab-props.ts";

interface BackupsTableProps extends TabProps {
  readonly backups: Live<readonly Backup[]>;
}

/** The backups of a service: one can be taken, verified, cancelled while it is taken, and deleted. */
export function BackupsTable({ service, reload, backups }: BackupsTableProps) {
  const refusal = refusalOf("services:write");
  const take = async () => {
    await account.value.client.backups.create(service.id);
    backups.reload();
    reload();
  };
  return (
    <LiveTable
      title="Backups"
      live={backups}
      keyOf={({ id }) => id}
      icon="clock"
      empty="The first backup is taken automatically once the service runs"
      actions={
        <ActionButton icon="plus" refusal={refusal} run={take}>
          Take a backup
        </ActionButton>
      }
      columns={[
        ["Taken", ({ created_at: time }) => <Age time={time} />],
        [
          "State",
          ({ status, error_message: message }) => (
            <span class="row">
              <Badge tone={toneOf(status)}>{status}</Badge>
              {message !== null && <span class="small">{message}</span>}
            </span>
          ),
        ],
        ["Kind", ({ kind }) => kind],
        ["Reason", ({ trigger }) => trigger],
        ["Size", ({ size_bytes: size }) => <span class="number">{size === null ? "" : bytesText(size)}</span>],
        [
          "Duration",
          ({ duration_seconds: seconds }) => (
            <span class="number">{seconds === null ? "" : durationText(seconds)}</span>
          ),
        ],
        ["Verified", ({ verified_at: time }) => <Age time={time} />],
        ["Deleted", ({ expires_at: time }) => <Age time={time} />],
        ["", (backup) => <BackupActions {...{ backup, refusal, reload: backups.reload }} />],
      ]}
    />
  );
}

interface BackupActionsProps {
  readonly backup: Backup;
  readonly refusal: string | undefined;
  readonly reload: () => void;
}

function BackupActions({ backup, refusal, reload }: BackupActionsProps) {
  const { backups } = account.value.client;
  const { id, service_id: serviceId } = backup;
  const name = nameOfBackup(backup);
  if (isUnfinished(backup))
    return (
      <ActionButton kind="plain" refusal={refusal} run={() => backups.cancel(serviceId, id).then(reload)}>
        Cancel<span class="visually-hidden"> {name}</span>
      </ActionButton>
    );
  return (
    <span class="row end">
      <ActionButton
        kind="plain"
        refusal={refusal ?? verificationRefusal(backup)}
        run={() => backups.verify(serviceId, id).then(reload)}
        done="The whole backup is read and decrypted now"
      >
        Verify<span class="visually-hidden"> {name}</span>
      </ActionButton>
      <DestroyButton
        text="Delete"
        refusal={refusal ?? deletionRefusal(backup)}
        title="Delete the backup"
        name={name}
        action="Delete backup"
        destroy={() => backups.delete(serviceId, id).then(reload)}
      >
        <p>The service cannot be restored to this time any more. Other backups and the service are unaffected.</p>
      </DestroyButton>
    </span>
  );
}
