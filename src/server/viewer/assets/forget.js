// Forgets a memory, and undoes it.
import { post, remove } from "./api.js";
import { go } from "./router.js";
import { address } from "./rows.js";
import { complain, toast } from "./toast.js";

/** Forgets it at once. It can be undone until the log is compacted. */
export async function forget(memory, then) {
  try {
    const { forgetting, also } = await remove(`/api/${memory.kind}/${memory.id}`);
    then?.();
    const more = also?.length ? `, and ${also.join(", ")} with it` : "";
    toast(`Forgotten${more}`, { label: "Undo", run: () => undo(forgetting, memory.name) }, 12_000);
  } catch (error) {
    complain(error);
  }
}

/** Undoes a forget operation. */
export async function undo(forgetting, name) {
  try {
    await post(`/api/forgettings/${encodeURIComponent(forgetting)}/undo`);
    toast("Memory restored", name && { label: "Show it", run: () => go(address(name)) });
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}
