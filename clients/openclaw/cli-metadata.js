/** `openclaw memory-gateway doctor`. OpenClaw loads this file for commands, also while another plugin has the memory slot. */

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { ID, diagnose } from "./doctor.js";
import { readConfig } from "./gateway.js";

export const NAME = "Memory Gateway";
export const DESCRIPTION = "Long-term memory in a self-hosted Memory Gateway";

/** @param {import("openclaw/plugin-sdk/plugin-entry").OpenClawPluginApi} api */
export function registerCommands(api) {
  const description = "Check the connection to Memory Gateway";
  api.registerCli(
    ({ program, config }) => {
      program
        .command(ID)
        .description(description)
        .command("doctor")
        .description("Find what keeps the memory plugin from working")
        .action(async () => {
          const problems = await diagnose(config);
          const { url } = readConfig(config.plugins?.entries?.[ID]?.config);
          console.log(problems.join("\n") || `Memory Gateway works. The memory panel is at ${url}/plugins/memory`);
          process.exitCode = problems.length ? 1 : 0;
        });
    },
    { descriptors: [{ name: ID, description, hasSubcommands: true }] },
  );
}

export default definePluginEntry({ id: ID, name: NAME, description: DESCRIPTION, register: registerCommands });
