import { Button } from "../parts/button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { SettingsForm } from "./settings-form.tsx";
import type { TabProps } from "./tab-props.ts";

/** Forms for name, networks and protection, for the state of the engine, and for the deletion. */
export function SettingsTab({ service, reload }: TabProps) {
  const command = useAction();
  const refusal = refusalOf("services:write");
  const { services } = account.value.client;
  const commandRow = (verb: "start" | "stop" | "restart", title: string) => (
    <Button
      busy={command.isBusy}
      refusal={refusal}
      onClick={() => command.run(async () => services.command(service.id, verb).then(reload))}
    >
      {title}
    </Button>
  );
  return (
    <>
      <SettingsForm
        service={service}
        nameHelp="The host name does not change"
        refusal={refusal}
        change={(change) => services.update(service.id, change).then(reload)}
      />
      <Card title="Engine">
        <div class="stack">
          <ErrorNotice error={command.error} />
          <div class="row">
            {service.status === "Stopped" ? (
              commandRow("start", "Start")
            ) : (
              <>
                {commandRow("restart", "Restart")}
                {commandRow("stop", "Stop")}
              </>
            )}
          </div>
        </div>
      </Card>
      <Deletion service={service} reload={reload} />
    </>
  );
}

function Deletion({ service }: TabProps) {
  const refusal =
    refusalOf("services:write") ??
    (service.deletion_protection ? "The service is protected from deletion." : undefined);
  const hasBackups = service.backups !== null;
  const remove = async () => {
    await account.value.client.services.delete(service.id);
    showToast("good", `${service.name} is being deleted`);
    openPage(hrefOf("services"));
  };
  return (
    <Card title="Delete">
      <div class="stack">
        <p>
          The service, its users and its data are deleted.{" "}
          {hasBackups
            ? "A final backup is retained for 7 days: until then the service can be undeleted."
            : "It has no backups, so it cannot be undeleted."}
        </p>
        <div class="row">
          <DestroyButton
            text="Delete service"
            kind="danger"
            refusal={refusal}
            title={`Delete ${service.name}`}
            name={service.name}
            action="Delete service"
            destroy={remove}
          >
            <p>
              Clients are disconnected immediately.{" "}
              {hasBackups
                ? "For 7 days the service can be undeleted with its data."
                : "Its data are deleted permanently."}
            </p>
          </DestroyButton>
        </div>
      </div>
    </Card>
  );
}
