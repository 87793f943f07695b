import { ActionButton } from "../parts/action-button.tsx";
import { ButtonLink } from "../parts/button.tsx";
import { Notice } from "../parts/notice.tsx";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { storageFault } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";

/** The reason why a disk that is nearly full blocks writes, with the ways to free space; nothing without one. */
export function StorageNotice({ service, reload }: TabProps) {
  const fault = storageFault(service);
  if (fault === undefined) return null;
  return (
    <Notice tone="bad">
      <div class="stack" data-gap="s">
        <p>
          <b>The disk is nearly full.</b> {fault}
        </p>
        <div class="row">
          <ButtonLink href={hrefOf("services", service.id, "scaling")}>Increase the storage</ButtonLink>
          <ActionButton
            refusal={refusalOf("services:write")}
            run={() => account.value.client.services.enableWrites(service.id).then(reload)}
            done="Clients can delete data for 15 minutes"
          >
            Allow writes for 15 minutes
          </ActionButton>
        </div>
      </div>
    </Notice>
  );
}
