import type { BackupSettings } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { scheduleOf, scheduleChangeOf, type ScheduleInput } from "./backups-view.ts";

/** The time of the daily backup, and the retention. */
export function BackupSettingsCard({ serviceId }: { readonly serviceId: string }) {
  const { data, error, reload } = useLive<BackupSettings>(
    `backup settings ${serviceId}`,
    (signal) => account.value.client.backups.settings(serviceId, { signal }),
    { service: serviceId },
  );
  return (
    <Card title="Schedule">
      {data === undefined ? (
        error === undefined ? (
          <Loading rows={2} />
        ) : (
          <ErrorNotice error={error} onRetry={reload} />
        )
      ) : (
        <Schedule settings={data} reload={reload} />
      )}
    </Card>
  );
}

function Schedule({ settings, reload }: { readonly settings: BackupSettings; readonly reload: () => void }) {
  const form = useForm<ScheduleInput>(scheduleOf(settings));
  return (
    <FormBody
      form={form}
      action="Save"
      refusal={refusalOf("services:write")}
      send={async (_, __, edited) => {
        await account.value.client.backups.updateSettings(settings.service_id, scheduleChangeOf(edited));
        showToast("good", "Saved");
        reload();
      }}
    >
      <div class="halves">
        <TextField
          label="Time of the daily backup, in UTC"
          type="time"
          required
          {...form.field("time")}
          fault={form.fault("hour") ?? form.fault("minute")}
        />
        <TextField
          label="Days that automated backups are retained"
          help="2 to 30. A shorter retention also applies to existing backups."
          type="number"
          min={2}
          max={30}
          {...form.field("days", "retention_days")}
        />
      </div>
    </FormBody>
  );
}
