/* Progressive enhancement: every function of the panel works without this script, by links and forms. */
'use strict';
{
  const one = (s, root = document) => root.querySelector(s);
  const all = (s, root = document) => [...root.querySelectorAll(s)];

  // The browser's time zone, in which the server formats times
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC');
  document.cookie = `mg_zone=${zone}; path=/; max-age=31536000; SameSite=Lax${location.protocol === 'https:' ? '; Secure' : ''}`;

  // Tooltips of times say how long ago they were
  const ago = new Intl.RelativeTimeFormat(document.documentElement.lang, {numeric: 'auto'});
  const units = [['year', 31536000], ['month', 2592000], ['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
  document.addEventListener('mouseover', (e) => {
    const time = e.target.closest('time[title]');
    if (!time) return;
    time.dataset.full ??= time.title;
    const seconds = (Date.parse(time.dateTime) - Date.now()) / 1000;
    const [unit, size] = units.find(([, one]) => Math.abs(seconds) >= one) ?? units.at(-1);
    time.title = `${time.dataset.full} · ${ago.format(Math.trunc(seconds / size), unit)}`;
  });

  // Navigation drawer (without script the button is a link to #mg-nav, shown by :target)
  const menu = one('.mg-menu-btn'), nav = one('#mg-nav');
  if (menu && nav) {
    const open = (yes) => {
      nav.classList.toggle('is-open', yes);
      menu.setAttribute('aria-expanded', yes);
      if (yes) one('a', nav).focus();
    };
    menu.setAttribute('role', 'button');
    menu.setAttribute('aria-expanded', 'false');
    menu.addEventListener('click', (e) => { e.preventDefault(); open(!nav.classList.contains('is-open')); });
    menu.addEventListener('keydown', (e) => { if (e.key === ' ') { e.preventDefault(); open(true); } });
    document.addEventListener('keydown', (e) => {
      if (e.key === 'Escape' && nav.classList.contains('is-open')) { open(false); menu.focus(); }
    });
  }

  // Drop-downs close with Escape or a click elsewhere
  const drops = all('details.mg-drop');
  document.addEventListener('click', (e) => drops.forEach((d) => { if (!d.contains(e.target)) d.open = false; }));
  document.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    drops.filter((d) => d.open).forEach((d) => { d.open = false; one('summary', d).focus(); });
  });

  // Selection of rows: single, a range with Shift, the page, all matches. The bar is always visible, so the layout does not shift.
  for (const form of all('form[data-select]')) {
    const boxes = all('input[name="id"]', form), head = one('[data-all]', form), bar = one('.mg-bulk', form);
    const matchingLabel = one('[data-take-all]', form), matching = one('input[name="matching"]', form);
    let last = null;
    const update = () => {
      const n = boxes.filter((b) => b.checked).length;
      if (head) { head.checked = n > 0 && n === boxes.length; head.indeterminate = n > 0 && n < boxes.length; }
      if (matching && n < boxes.length) matching.checked = false;
      if (matchingLabel) matchingLabel.classList.toggle('is-on', n > 0 && n === boxes.length);
      const isAll = matching && matching.checked;
      one('[data-n]', bar).textContent = (isAll ? Number(form.dataset.total) : n).toLocaleString('en');
      bar.classList.toggle('is-on', n > 0);
      one('[data-none]', bar).classList.toggle('mg-vh', n > 0);
      one('[data-some]', bar).hidden = n === 0;
      one('[data-clear]', bar).hidden = n === 0;
      all('.mg-acts button, .mg-acts select', bar).forEach((b) => { b.disabled = n === 0; });
    };
    form.addEventListener('click', (e) => {
      if (!e.target.matches('input[name="id"]')) return;
      if (e.shiftKey && last) {
        const [a, b] = [boxes.indexOf(last), boxes.indexOf(e.target)].sort((x, y) => x - y);
        boxes.slice(a, b + 1).forEach((box) => { box.checked = e.target.checked; });
      }
      last = e.target;
      update();
    });
    if (head) {
      head.addEventListener('change', () => { boxes.forEach((b) => { b.checked = head.checked; }); update(); });
    }
    all('[data-group]', form).forEach((g) => {
      g.addEventListener('change', () => {
        all('input[name="id"]', g.closest('.mg-batch')).forEach((b) => { b.checked = g.checked; });
        update();
      });
    });
    if (matching) matching.addEventListener('change', update);
    const clear = one('[data-clear]', form);
    if (clear) clear.addEventListener('click', () => { boxes.forEach((b) => { b.checked = false; }); update(); (head || boxes[0]).focus(); });
    window.addEventListener('pageshow', update);
    update();
  }

  // A double click submits a form once. An export does not leave the page, so it can be repeated after two seconds.
  const sent = new Map();
  document.addEventListener('submit', (e) => {
    if (e.target.method !== 'post') return;
    const wait = e.submitter?.value === 'export' ? 2000 : Infinity;
    if (performance.now() < (sent.get(e.target) ?? 0)) e.preventDefault();
    else sent.set(e.target, performance.now() + wait);
  });
  window.addEventListener('pageshow', () => sent.clear());

  // Notices stay until they are closed
  all('.mg-note .mg-x').forEach((x) => x.addEventListener('click', () => { x.closest('.mg-note').remove(); one('#content-start').focus(); }));

  // Character counter. Counts code points, as the server does; an error below the field appears above the limit
  all('[data-count]').forEach((area) => {
    const out = one('#' + area.dataset.count), max = Number(area.dataset.max), err = one('#' + area.dataset.count + '-err');
    const update = () => {
      const n = [...area.value.replace(/\r\n/g, '\n').trim()].length, over = n > max;
      out.textContent = n.toLocaleString('en');
      out.parentElement.classList.toggle('mg-down', over);
      area.setAttribute('aria-invalid', over);
      if (err) { err.hidden = !over; one('[data-over]', err).textContent = (n - max).toLocaleString('en'); }
    };
    area.addEventListener('input', update);
    update();
  });

  // Forms whose unsaved changes the browser protects when the page is left
  for (const form of all('form[data-guard]')) {
    let isChanged = form.dataset.guard === 'changed';
    form.addEventListener('input', () => { isChanged = true; });
    form.addEventListener('submit', () => { isChanged = false; });
    window.addEventListener('beforeunload', (e) => { if (isChanged) e.preventDefault(); });
  }

  // Text that was typed when the session ended is there again after signing in, in the same tab
  const draftOf = (form) => `mg.draft ${location.pathname} ${form.getAttribute('action') ?? ''}`;
  const fieldsOf = (form) => [...form.elements].filter((f) => f.name && f.name !== 'csrfmiddlewaretoken' && !['file', 'password'].includes(f.type));
  const hasSignedIn = document.referrer && new URL(document.referrer).pathname.includes('/login/');
  const forget = () => Object.keys(sessionStorage).filter((key) => key.startsWith('mg.draft ')).forEach((key) => sessionStorage.removeItem(key));
  const guarded = all('form[data-guard]');
  const drafts = hasSignedIn ? guarded.map((form) => JSON.parse(sessionStorage.getItem(draftOf(form)))) : [];
  if (nav) forget();
  guarded.forEach((form, number) => {
    const save = () => sessionStorage.setItem(draftOf(form), JSON.stringify(
      fieldsOf(form).map((f) => [f.name, f.type === 'radio' || f.type === 'checkbox' ? f.checked : f.value])
    ));
    form.addEventListener('input', save);
    if (!drafts[number]) return;
    fieldsOf(form).forEach((f, at) => {
      const [name, value] = drafts[number][at] ?? [];
      if (name !== f.name) return;
      if (typeof value === 'boolean') f.checked = value; else f.value = value;
    });
    form.dispatchEvent(new Event('input', {bubbles: true}));
  });
  document.addEventListener('submit', (e) => { if (e.target.action.includes('/sign-out/') || e.target.action.includes('/logout/')) forget(); });

  // Copy buttons, hidden without this script
  all('[data-copy]').forEach((b) => {
    b.addEventListener('click', async () => {
      await navigator.clipboard.writeText(one('#' + b.dataset.copy).textContent);
      b.textContent = b.dataset.done;
    });
  });

  // Files are sent one by one, two at a time, each with its own progress, and then show their state until they are
  // searchable. A single file leads to its page. Without script they are one form.
  const upload = one('form[data-upload]');
  if (upload) {
    const input = one('input[type=file]', upload), list = one('[data-files]', upload), button = one('.is-main', upload);
    const search = one('[data-search]', upload), pending = new Map();
    const complain = (field, text) => {
      const error = one(`#${field.id}_error`) ?? field.insertAdjacentElement('afterend', document.createElement('p'));
      error.id = `${field.id}_error`;
      error.className = 'mg-err';
      error.textContent = text;
      error.hidden = !text;
      field.setAttribute('aria-invalid', Boolean(text));
      field.setAttribute('aria-describedby', error.id);
      if (text) field.focus();
    };
    const watch = async () => {
      for (const [url, state] of [...pending].slice(0, 4)) {
        const answer = await fetch(`${url}?part=1`);
        if (!answer.ok) { pending.delete(url); continue; }
        state.innerHTML = await answer.text();  // the badge that the server renders
        if (answer.headers.has('HX-Refresh')) pending.delete(url);
      }
      if (pending.size) setTimeout(watch, 1000);
    };
    const lineOf = (file) => {
      const line = document.createElement('li'), name = document.createElement('bdi'), state = document.createElement('span');
      name.textContent = file.name;
      state.className = 'mg-quiet';
      line.append(name, ' ', state);
      list.append(line);
      return (text, url) => {
        state.textContent = text;
        if (!url) return;
        pending.set(url, state);
        const link = document.createElement('a');
        link.href = url;
        name.replaceWith(link);
        link.append(name);
      };
    };
    const send = (file, show) => new Promise((done) => {
      const request = new XMLHttpRequest(), data = new FormData(upload);
      data.set('file', file);
      if (input.files.length === 1) data.set('leave', '1');
      request.open('POST', location.href);
      request.setRequestHeader('Accept', 'application/json');
      request.responseType = 'json';
      request.upload.addEventListener('progress', (e) => show(`${Math.floor((100 * e.loaded) / e.total)} %`));
      request.addEventListener('loadend', () => {
        const {urls = [], errors = {}, detail} = request.response ?? {};
        const {file: ofFile = [], ...others} = errors;
        Object.entries(others).forEach(([name, texts]) => complain(one(`[name=${name}]`, upload), texts.join(' ')));
        const text = [...ofFile, ...Object.values(others).flat()].join(' ');
        show(urls.length ? upload.dataset.sent : text || detail || upload.dataset.failed, urls[0]);
        done(urls[0]);
      });
      request.send(data);
    });
    upload.addEventListener('submit', async (e) => {
      if (!input.files.length) return;
      e.preventDefault();
      const isSingle = input.files.length === 1;
      button.disabled = true;
      list.replaceChildren();
      all('.mg-err', upload).forEach((error) => complain(error.previousElementSibling, ''));
      const queue = [...input.files].map((file) => [file, lineOf(file)]);
      let last = null;
      const work = async () => {
        for (let next = queue.shift(); next; next = queue.shift()) {
          const [file, show] = next;
          if (file.size > Number(upload.dataset.max)) show(upload.dataset.large);
          else last = (await send(file, show)) ?? last;
        }
      };
      await Promise.all([work(), work()]);
      if (last && isSingle) { location.assign(last); return; }
      if (last && search) {
        search.href = `${search.dataset.search}?${new URLSearchParams({user: one('[name=user]', upload).value, resources: 1})}`;
        search.hidden = false;
      }
      watch();
      input.value = '';
      button.disabled = false;
      sent.delete(upload);
    });
    document.addEventListener('dragover', (e) => e.preventDefault());
    document.addEventListener('drop', (e) => {
      e.preventDefault();
      if (e.dataTransfer.files.length) input.files = e.dataTransfer.files;
    });
  }

  // The audit trail names which result of Find was opened
  const choose = (e) => {
    const row = e.target.closest('a') && e.target.closest('[data-chosen]');
    if (!row) return;
    const {choose: to, token} = row.closest('[data-choose]').dataset, report = new FormData();
    report.append('csrfmiddlewaretoken', token);
    report.append('chosen', row.dataset.chosen);
    report.append('opening', row.closest('[data-opening]')?.dataset.opening ?? '');
    navigator.sendBeacon(to, report);
  };
  document.addEventListener('click', choose);
  document.addEventListener('auxclick', choose);

  // Palette: Ctrl K or ⌘K opens Find over the page. The arrow keys move in its results, Enter opens the first
  const palette = one('#mg-palette');
  if (palette) {
    const input = one('input', palette), results = one('#mg-results'), links = () => all('li a', results);
    const load = async () => {
      const q = input.value.trim(), {opening} = palette.dataset;
      const answer = await fetch(`${input.form.action}?${new URLSearchParams({part: 1, q, opening})}`);
      if (answer.ok && q === input.value.trim()) results.innerHTML = await answer.text();
    };
    let waiting;
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(load, 200); });
    document.addEventListener('keydown', (e) => {
      if (!(e.ctrlKey || e.metaKey) || e.key.toLowerCase() !== 'k') return;
      e.preventDefault();
      if (palette.open) { palette.close(); return; }
      palette.dataset.opening = Date.now().toString(36) + Math.random().toString(36).slice(2, 10);  // one event in the audit trail
      palette.showModal();
      input.select();
      load();
    });
    input.form.addEventListener('submit', (e) => {
      if (one('[data-found]', results)?.dataset.found !== input.value.trim() || !links().length) return;
      e.preventDefault();
      links()[0].click();
    });
    palette.addEventListener('keydown', (e) => {
      const by = {ArrowDown: 1, ArrowUp: -1}[e.key];
      if (!by) return;
      e.preventDefault();
      const to = [input, ...links()];
      to[Math.min(to.length - 1, Math.max(0, to.indexOf(document.activeElement) + by))].focus();
    });
    palette.addEventListener('click', (e) => { if (e.target === palette) palette.close(); });
  }

  // The pane beside a list of memories: what is saved there is marked in the list, which stays as it is
  const pane = one('[data-pane]');
  if (pane) {
    const rowOf = (number) => one(`[data-peek="${number}"]`)?.closest('[data-row]');
    const close = () => {
      const row = one('[data-row].is-open');
      pane.hidden = true;
      row?.classList.remove('is-open');
      one('[data-peek]', row ?? undefined)?.focus();
    };
    document.addEventListener('htmx:after:swap', (e) => {
      const {ctx} = e.detail;
      if (ctx.target !== one('#mg-pane')) return;
      const shown = one('[data-shown]', pane)?.dataset.shown;
      if (!shown) { location.assign(ctx.response.raw.url); return; }  // another page, such as the sign-in
      const [, changed] = ctx.request.method === 'POST' && ctx.response.raw.redirected ? ctx.request.action.match(/\/m\/(\d+)\//) ?? [] : [];
      if (changed) rowOf(changed)?.classList.add('is-done');
      one('[data-row].is-open')?.classList.remove('is-open');
      rowOf(shown)?.classList.add('is-open');
      rowOf(shown)?.scrollIntoView({block: 'nearest'});
      pane.hidden = false;
      pane.scrollTop = 0;
      (one('textarea', pane) ?? one('h2', pane)).focus({preventScroll: true});
    });
    let isChanged = false;
    pane.addEventListener('input', () => { isChanged = true; });
    document.addEventListener('htmx:before:request', (e) => {
      const {ctx} = e.detail;
      if (ctx.target === one('#mg-pane') && ctx.request.method === 'GET' && isChanged && !confirm(pane.dataset.pane)) e.preventDefault();
      else isChanged = false;
    });
    window.addEventListener('beforeunload', (e) => { if (isChanged && !pane.hidden) e.preventDefault(); });
    one('[data-close]', pane).addEventListener('click', close);
    pane.addEventListener('keydown', (e) => { if (e.key === 'Escape') close(); });
  }

  // Keyboard shortcuts. They can be disabled (WCAG 2.1.4); the setting is stored in this browser
  const dialog = one('#mg-keys'), keysBox = one('#mg-keys-on');
  const keysOn = () => localStorage.getItem('mg.keys') !== 'off';
  if (keysBox) {
    keysBox.checked = keysOn();
    keysBox.addEventListener('change', () => localStorage.setItem('mg.keys', keysBox.checked ? 'on' : 'off'));
  }
  all('[data-keys]').forEach((b) => b.addEventListener('click', () => dialog.showModal()));
  const rows = all('[data-row]');
  const move = (by) => {
    const at = rows.indexOf(document.activeElement.closest('[data-row]'));
    const to = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (to) { one('a', to).focus(); to.scrollIntoView({block: 'nearest'}); }
    if (!rows.length) one(`a[rel=${by > 0 ? 'next' : 'prev'}]`)?.click();
  };
  const edit = (row) => {
    const link = row && one('a[href*="/memory/m/"]', row);
    if (link) location.assign(`${link.pathname}edit/${link.search}`);
    else if (!row) one('main a[href*="/edit/"]')?.click();
  };
  const discard = (row) => {
    const box = one('input[name="id"]', row), button = one('button[value="delete"]', row.closest('form') ?? row);
    if (!box || !button) return;
    if (!box.checked) box.click();
    button.click();
  };
  const places = {d: '/memory/', m: '/list/', u: '/users/', r: '/resources/', t: '/trash/', s: '/search/', l: '/searches/'};
  let went = false;
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input:not([type=checkbox]), textarea, select') || !keysOn()) return;
    if (one('dialog[open]')) return;
    const row = document.activeElement.closest('[data-row]');
    if (went && places[e.key]) one(`#mg-nav a[href$="${places[e.key]}"]`)?.click();
    else if (e.key === '/') { const find = one('[data-find]'); if (find) { e.preventDefault(); find.focus(); } }
    else if (e.key === '?' && dialog) dialog.showModal();
    else if (e.key === 'j') move(1);
    else if (e.key === 'k') move(-1);
    else if (e.key === 'x' && row) one('input[name="id"]', row)?.click();
    else if (e.key === 'o' && row) one('a', row).click();
    else if (e.key === 'p' && row) one('[data-peek]', row)?.click();
    else if (e.key === 'e') edit(row);
    else if (e.key === '#' && row) discard(row);
    else if (e.key === 'u') all('.mg-crumbs > a').at(-1)?.click();
    went = e.key === 'g';
  });
}
