// Two small things, neither of them needed: times in the reader's own clock, and rounds that tick by.
'use strict';

const told = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function localize(root) {
  for (const time of root.querySelectorAll('time[datetime]:not([data-told])')) {
    const when = new Date(time.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    time.dataset.told = 'yes';
    const utc = document.createElement('small');
    utc.textContent = `(${time.textContent})`;
    time.replaceChildren(told.format(when), ' ', utc);
  }
}

// The pieces of a part that the server has written anew; one that has not changed is left alone, so that it is not read
// out again.
function fill(part, html) {
  const fresh = new DOMParser().parseFromString(html, 'text/html');
  for (const piece of fresh.querySelectorAll('[data-piece]')) {
    const shown = part.querySelector(`[data-piece="${piece.dataset.piece}"]`);
    if (shown.innerHTML !== piece.innerHTML) shown.replaceChildren(...piece.childNodes);
  }
  localize(part);
}

// A part of the page that changes by itself as long as somebody looks: a browser has few connections for each server, so
// a hidden page gives its own back. The last event says that nothing follows.
function follow(part) {
  let source = null;
  const stop = () => { source?.close(); source = null; };
  const start = () => {
    source = new EventSource(part.dataset.live);
    source.addEventListener('part', (event) => fill(part, event.data));
    source.addEventListener('end', () => { stop(); location.replace(part.dataset.page); });
    source.addEventListener('error', () => {
      const note = document.createElement('p');
      note.className = 'note bad';
      note.textContent = 'Not live any more; load the page again.';
      part.querySelector('[data-piece="trouble"]').replaceChildren(note);
    });
  };
  document.addEventListener('visibilitychange', () => { stop(); if (!document.hidden) start(); });
  if (!document.hidden) start();
}

localize(document);
document.querySelectorAll('[data-live]').forEach(follow);
