/** `gateway.js` and `transcript.js` are symbolic links, which a checkout on Windows or a zip archive may lack. */

const REMEDY =
  "missing links: gateway.js and transcript.js must be the files of ../openclaw. Copy them from there, " +
  "or clone the repository with `git clone -c core.symlinks=true`.";

/**
 * Return a module, or say what to do if its files are the text of a link.
 *
 * @template T
 * @param {() => Promise<T>} load
 * @returns {Promise<T>}
 */
export async function loaded(load) {
  try {
    return await load();
  } catch (error) {
    const { name, code } = /** @type {Error & { code?: string }} */ (error);
    throw name === "SyntaxError" || code === "ERR_MODULE_NOT_FOUND" ? new Error(REMEDY) : error;
  }
}
