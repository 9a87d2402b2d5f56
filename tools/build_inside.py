"""How the package is built: what an installed copy needs of the project beside its modules goes
inside.
"""

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py


class BuildInside(build_py):
    """Puts the stored results and the lock into ``helpers``, where an installed copy looks for
    them.
    """

    def run(self):
        """Build the modules, then copy; an editable install reads the checkout's own."""
        super().run()
        if not self.editable_mode:
            inside = Path(self.build_lib, "helpers")
            shutil.copytree("book/results", inside / "results", dirs_exist_ok=True)
            shutil.copy("requirements.txt", inside)
