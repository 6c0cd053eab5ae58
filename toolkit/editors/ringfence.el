;;; ringfence.el --- Keep buffers in step with what agents change  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: files, tools
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `ringfence-mode' runs `ringfence bridge json' and does with your buffers
;; what agents did to the files: it closes the buffer of a deleted file,
;; follows a moved one, and reads a changed one again.  A buffer with unsaved
;; text is never closed or read again before you said yes.
;;
;;   emacs -l "$(ringfence bridge emacs)" -f ringfence-mode

;;; Code:

(require 'json)
(require 'subr-x)

(defgroup ringfence nil
  "Keep buffers in step with what agents change."
  :group 'files
  :prefix "ringfence-")

(defcustom ringfence-program '("ringfence")
  "The program and the words that come before its command."
  :type '(repeat string))

(defcustom ringfence-root nil
  "The workspace to follow.
When nil it is the project that the current folder belongs to."
  :type '(choice (const :tag "The current project" nil) directory))

(defcustom ringfence-state nil
  "Where the state is kept; nil means the place that Ringfence takes by itself."
  :type '(choice (const :tag "The usual place" nil) string))

(defcustom ringfence-session nil
  "The session to follow, with its sub-sessions; nil means all of them."
  :type '(choice (const :tag "All" nil) string))

(defvar ringfence-following nil
  "The root that is being followed, as soon as its changes are told.")

(defvar ringfence--process nil
  "The process that tells of changes.")

(defvar ringfence--rest ""
  "The beginning of a line whose end has not arrived yet.")

(defvar ringfence--waiting nil
  "Events that have arrived and are not dealt with, oldest first.")

(defvar ringfence--busy nil
  "Non-nil while events are dealt with, which may take as long as a question.")

;;;###autoload
(define-minor-mode ringfence-mode
  "Do with buffers what agents do to their files."
  :global t
  :group 'ringfence
  (ringfence--stop)
  (when ringfence-mode
    (condition-case problem
        (ringfence--start)
      (error
       (setq ringfence-mode nil)
       (message "Ringfence: %s" (error-message-string problem))))))

(defun ringfence--command ()
  "The words that start the process."
  (append ringfence-program
          '("bridge" "json")
          (and ringfence-root (list "--root" (expand-file-name ringfence-root)))
          (and ringfence-state
               (list "--state" (if (string-match-p "://" ringfence-state)
                                   ringfence-state
                                 (expand-file-name ringfence-state))))
          (and ringfence-session (list "--session" ringfence-session))))

(defun ringfence--start ()
  "Start to follow."
  (setq ringfence--rest ""
        ringfence--process
        (make-process :name "ringfence"
                      :command (ringfence--command)
                      :coding 'utf-8-unix
                      :connection-type 'pipe
                      :noquery t
                      :stderr (get-buffer-create " *ringfence problems*")
                      :filter #'ringfence--arrived
                      :sentinel #'ringfence--ended)))

(defun ringfence--stop ()
  "Follow no longer."
  (when (process-live-p ringfence--process)
    (set-process-sentinel ringfence--process #'ignore)
    (delete-process ringfence--process))
  (setq ringfence--process nil
        ringfence-following nil
        ringfence--waiting nil))

(defun ringfence--ended (process change)
  "Say that PROCESS ended by itself, with CHANGE being how."
  (when (and (eq process ringfence--process) (not (process-live-p process)))
    (ringfence--stop)
    (setq ringfence-mode nil)
    (message "Ringfence follows no longer (%s); see the buffer \" *ringfence problems*\""
             (string-trim change))))

(defun ringfence--arrived (process text)
  "Take up the lines in TEXT that PROCESS wrote."
  (when (eq process ringfence--process)
    (let ((lines (split-string (concat ringfence--rest text) "\n")))
      (setq ringfence--rest (car (last lines)))
      (dolist (line (butlast lines))
        (let ((event (ignore-errors (ringfence--read line))))
          (when event
            (setq ringfence--waiting (nconc ringfence--waiting (list event)))))))
    ;; Not from within a filter: a question would hold up what else arrives.
    (unless ringfence--busy
      (run-at-time 0 nil #'ringfence--work))))

(defun ringfence--read (line)
  "The event that LINE tells of, as an alist."
  (let ((json-object-type 'alist)
        (json-key-type 'symbol)
        (json-null nil))
    (json-read-from-string line)))

(defun ringfence--work ()
  "Deal with what has arrived."
  (unless ringfence--busy
    (let ((ringfence--busy t)
          (inhibit-quit nil))
      (while ringfence--waiting
        (let ((event (pop ringfence--waiting)))
          (condition-case problem
              (ringfence--apply event)
            (quit nil)
            (error (message "Ringfence: %s: %s" (alist-get 'path event)
                            (error-message-string problem)))))))))

(defun ringfence--apply (event)
  "Do with the buffers what EVENT says was done to a file."
  (let ((kind (alist-get 'event event))
        (file (alist-get 'file event))
        (to (alist-get 'to_file event))
        (who (or (alist-get 'agent event) "an agent")))
    (cond
     ((equal kind "following")
      (setq ringfence-following (alist-get 'root event)))
     ((null file))
     ((equal kind "moved")
      (when to (ringfence--moved file to who)))
     ;; What was made again since is not gone.
     ((and (equal kind "deleted") (not (file-exists-p file)))
      (ringfence--deleted file who))
     (t (ringfence--changed file who)))))

(defun ringfence--buffer (file)
  "The buffer of FILE that shows it as text, if there is one."
  (let ((buffer (find-buffer-visiting file)))
    (and buffer (buffer-live-p buffer) buffer)))

(defun ringfence--may-lose (buffer what)
  "Whether BUFFER has nothing unsaved, or WHAT may cost that in its user's eyes."
  (or (not (buffer-modified-p buffer))
      ;; To quit the question is to say no to it, and to it alone.
      (condition-case nil
          (y-or-n-p (format "%s; discard the unsaved text in %s? " what (buffer-name buffer)))
        (quit (message "%s is left as it is" (buffer-name buffer)) nil))))

(defun ringfence--close (buffer)
  "Close BUFFER, whose unsaved text nobody wants."
  (with-current-buffer buffer
    (set-buffer-modified-p nil)
    (kill-buffer buffer)))

(defun ringfence--deleted (file who)
  "Close the buffer of FILE, which WHO deleted."
  (let ((buffer (ringfence--buffer file)))
    (when (and buffer
               (ringfence--may-lose buffer (format "%s deleted %s" who (abbreviate-file-name file))))
      (ringfence--close buffer))))

(defun ringfence--changed (file who)
  "Read FILE again into its buffer, since WHO changed it."
  (let ((buffer (ringfence--buffer file)))
    (when (and buffer
               (file-readable-p file)
               (not (file-directory-p file))
               (not (verify-visited-file-modtime buffer))
               (ringfence--may-lose buffer (format "%s changed %s" who (abbreviate-file-name file))))
      (with-current-buffer buffer
        (revert-buffer t t t)))))

(defun ringfence--moved (file to who)
  "Let the buffer of FILE be that of TO, to where WHO moved it."
  (let ((buffer (ringfence--buffer file))
        (there (ringfence--buffer to)))
    (if (not buffer)
        (ringfence--changed to who)
      (when (and there
                 (not (eq there buffer))
                 (ringfence--may-lose there (format "%s moved another file to %s" who
                                                    (abbreviate-file-name to))))
        (ringfence--close there))
      (with-current-buffer buffer
        (let ((known (visited-file-modtime))
              ;; A new name may bring a new mode, which would ask about variables that an agent wrote.
              (enable-local-variables nil)
              (enable-dir-local-variables nil))
          (set-visited-file-name to t t)
          ;; What the buffer was read from, so that a later change is still seen.
          (unless (eql known 0)
            (set-visited-file-modtime known))))
      (ringfence--changed to who))))

(provide 'ringfence)

;;; ringfence.el ends here
